"""What bounds keep of scores: by believed rows and targets that follow the model."""

from dataclasses import dataclass

import numpy as np

from app.inference.core.model import Array64
from app.inference.methods.one_belief.frame import Frame
from app.inference.methods.one_belief.linear_algebra import inverse_of
from app.inference.methods.one_belief.rows import Rows
from app.inference.methods.one_belief.tuning import TUNING
from app.inference.models.residuals import require_residuals

_LEAST, _MOST, _STEPS = 0.02, 60.0, 24


@dataclass(frozen=True, slots=True, eq=False)
class Response:
    """For each draw, the share of its score that a bound keeps, as a function of how far the bound is.

    The distance of the bound is C over the length of the information factors in the metric. ``kept`` ``(M, G)`` is on
    a grid that is uniform in its logarithm; ``offset`` ``(M,)`` is the logarithm of each draw's first distance.
    ``mistakes`` ``(M, D)`` are the mean changes of scores, white, by a label that is wrong; zero for other targets.
    """

    kept: Array64
    offset: Array64
    mistakes: Array64

    def share(self, distance: Array64) -> Array64:
        """Interpolate the shares ``(M,)`` at distances ``(M,)``."""
        step = np.log(_MOST / _LEAST) / (_STEPS - 1)
        place = (np.log(np.maximum(distance, 1e-30)) - self.offset) / step
        place = np.clip(place, 0, _STEPS - 1 - 1e-9)
        low = place.astype(np.int64)
        rest, index = place - low, np.arange(len(low))
        return np.asarray((1 - rest) * self.kept[index, low] + rest * self.kept[index, low + 1])


def respond(
    rng: np.random.Generator, rows: Rows, theta: Array64, frame: Frame, *, labels: bool, cut: float | None
) -> Response:
    """Compute the response at ``theta``. Bounds of ``labels`` do not depend on the label, so one is drawn."""
    times = 1 if labels else TUNING.targets
    transform = inverse_of(frame.own)
    length = np.sqrt(np.square(frame.white).sum(axis=(1, 2)))
    usual = max(float(np.median(length)), 1e-30)
    whole, kept = np.zeros(len(length)), np.zeros((len(length), _STEPS))
    for _ in range(times):
        folded = rows.folded(rows.model.sample_targets(rng, rows.draws, theta))
        scores = rows.model.scores(folded, theta).astype(np.float64) @ transform.T
        whole += np.vecdot(scores, scores)
        for step, distance in enumerate(np.geomspace(_LEAST, _MOST, _STEPS)):
            clip = distance * usual * (cut or 1.0)
            if cut is None:
                bounded = rows.model.bounded_scores(folded, theta, transform, clip)
            else:
                bounded = require_residuals(rows.model).cut_scores(folded, theta, transform, clip, cut)
            kept[:, step] += np.vecdot(bounded.astype(np.float64), scores)
    kept = np.clip(kept / np.maximum(whole, 1e-300)[:, None], 1e-3, 1.0)
    mistakes = np.zeros((len(length), len(theta)))
    if labels:
        both = [rows.model.scores(rows.folded(np.full(len(length), y)), theta).astype(np.float64) for y in (0.0, 1.0)]
        mistakes = (both[0] + both[1]) @ transform.T
    offset = np.log(_LEAST * (cut or 1.0) * usual / np.maximum(length, 1e-30))
    return Response(np.maximum.accumulate(kept, axis=1), offset, mistakes)
