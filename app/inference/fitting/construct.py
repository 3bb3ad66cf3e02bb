"""Points whose posterior has a given Laplace approximation, in closed form up to three scalars.

With ``n = h'A h``, ``h`` the intercept's coefficients in the span, a frame of the information ``A`` gives points
``x_m = V_m / sqrt(c_m)`` with ``c = (V'h)^2``: intercepts of exactly 1 and ``sum c_m x_m x_m' = A``. The score at the
wanted mode balances the prior's pull where ``V s = pull``, ``s_m = sqrt(c_m) r_m / v_m``.
"""

from dataclasses import dataclass, replace

import numpy as np

from app.inference.core.model import Array64
from app.inference.fitting.framing import frame_points
from app.inference.fitting.links import Link
from app.inference.fitting.points import Points
from app.inference.fitting.regions import Region
from app.inference.fitting.scalars import Moments, Scalars, solve_labelled, solve_unlabelled
from app.inference.fitting.span import Span

_SHRINKAGE = (1.0, 0.9, 0.75, 0.5, 0.25, 0.1, 0.0)
_MOST_OF_SCORES = 0.9
"""What the prior's pull may take of the scores' squared length before directions are lifted for it."""
_LIFTS = 4


@dataclass(frozen=True, slots=True)
class Construction:
    """Exactly ``size`` points, weights at most ``heaviest`` in sum, close to ``region`` where there is one."""

    link: Link
    size: int
    heaviest: float = np.inf
    region: Region | None = None

    def points(self, span: Span, rng: np.random.Generator) -> Points | None:
        """For the span's information and mean; None for a span without an intercept.

        A mean too far for any such points is moved towards zero. The span must be one that ``size`` points can hold.
        """
        for factor in _SHRINKAGE:
            found = self._exact(replace(span, mean=factor * span.mean, pull=factor * span.pull), rng)
            if found is not None and found.finite and float(np.sum(found.weight)) <= self.heaviest:
                return found
        return None

    def _exact(self, span: Span, rng: np.random.Generator) -> Points | None:
        for _ in range(_LIFTS):  # lifting a direction moves the moments a little
            moments = _moments(span)
            scalars = None if moments is None else self._scalars(moments)
            if scalars is None:
                return None
            lifted = _lift(span.information, np.square(span.pull), _room(scalars))
            if np.all(lifted <= span.information):
                return frame_points(self.link, span, scalars, rng, self.region)
            span = replace(span, information=lifted)
        return None

    def _scalars(self, moments: Moments) -> Scalars | None:
        if self.link.labels:
            return solve_labelled(self.link, moments, self.size)
        return solve_unlabelled(moments, self.size, self.link.squares(moments.n))


def _moments(span: Span) -> Moments | None:
    h, information = span.basis[-1], span.information
    n = float(np.square(h) @ information)
    if not 0 < n < np.inf:
        return None
    centre = float((h * information) @ span.mean) / n
    spread = float(np.sqrt(information @ np.square(span.mean - centre * h) / n))
    return Moments(n, centre, spread, float(h @ span.pull), float(span.mean @ span.pull))


def _room(scalars: Scalars) -> float:
    """How long the pull may be: no longer than given scores, any length where targets adapt to it."""
    if scalars.ratio is None:
        return np.inf
    return _MOST_OF_SCORES * float(scalars.mass @ np.square(scalars.ratio))


def _lift(information: Array64, pulls: Array64, room: float) -> Array64:
    """``information`` raised just where ``sum pulls / information <= room`` asks for it, the neediest first."""
    needs = pulls / np.maximum(information, np.finfo(np.float64).tiny)
    if float(np.sum(needs)) <= room:
        return information
    ascending = np.sort(needs)
    before = np.concatenate(([0.0], np.cumsum(ascending)[:-1]))
    caps = (room - before) / np.arange(len(needs), 0, -1)
    cap = float(caps[np.argmax(ascending >= caps)])  # all from here on are capped alike
    return np.maximum(information, pulls / (0.99 * cap))
