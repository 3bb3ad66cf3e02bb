"""The KL of one Gaussian release of the whole budget, given the posterior.

The release is one sum of scores of a logistic regression at the full posterior's mode, in the metric of its precision
(``H = L L'``, ``W = L^-1``). A weight ``w(x)`` bounds each score to norm C and leaves it conditionally unbiased. One
Newton step follows, with the weighted information ``J = I_1 +`` prior. Let ``I_k = W (sum_n w^k v x x') W'`` with
``v = p (1 - p)``. The expected KL has two parts:

- the noise: ``(sigma C)^2 tr(J^-2) / 2``;
- the weights: ``tr(J^-1 (I_2 - I_1 I_0^-1 I_1) J^-1) / 2``, from the variance of the weighted score given
  a full score of zero.

The best C is used, and the curvature costs nothing. A method has access to neither.

This is an expectation over labels that follow the model. :func:`compute_table_floors` is the second reference: the KL
of one release of *these* rows. There, bounding moves the mode by a fixed step ``J^-1 g``, where g is the bounded score
at the exact mode. If labels do not follow a logistic regression, the step is far from the model's expectation. The best
of a few bounds is used, with the same weight or by clipping each row's score.

:func:`compute_release_floors` is the same for every family, and for units of several rows. The information of bounded
scores is then a sum over targets that are drawn from the model; units of several rows are clipped only.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple

import numpy as np
from scipy.linalg import solve_triangular
from scipy.special import expit

from app.inference.core.model import Array64
from app.privacy.calibration import calibrate
from app.privacy.events import GaussianEvent
from benchmarks.cases import Case, make_design_rows
from benchmarks.records import REFERENCE, Record

CLIPS: Final = np.geomspace(0.02, 1000, 20)
"""Squared clipping norms, divided by D / slots."""
TABLE_CLIPS: Final = (0.3, 0.5, 1, 2, 3, 4, 6, 8, 12, 20, 40, 100, 400, 2000)
"""The same for a given table. At ε = 1, larger norms would not improve the release."""


EXPECTED: Final = "one-shot noise floor"
OF_ROWS: Final = "floor of these rows"
"""The labels of the two references."""


def list_floor_references(
    case: Case, size: int, epsilons: Sequence[float], values_by_label: Mapping[str, Sequence[float] | Array64]
) -> Iterator[Record]:
    """A record for each label and epsilon.

    ``values_by_label`` holds the KL in nats at each epsilon. ``size`` is the number of points of the runs to compare.
    """
    rows, dimension = case.facts.slots, case.problem.model.dimension
    for label, values in values_by_label.items():
        for epsilon, kl in zip(epsilons, values, strict=True):
            yield Record(case.name, label, rows, dimension, size, epsilon, kl=float(kl), outcome=REFERENCE)


def compute_one_shot_noise(epsilon: float, delta: float) -> float:
    """The noise multiplier of one Gaussian mechanism that costs ``epsilon``."""
    return calibrate(lambda noise: (GaussianEvent(noise),), epsilon, delta)


class AtMode(NamedTuple):
    """A table at the mode of its posterior.

    ``white`` ``(n, D)`` are rows in the posterior's metric, and ``p`` ``(n,)`` are the probabilities of a label 1.
    ``y`` ``(n,)`` are the labels. ``prior`` ``(D, D)`` is the precision of the prior, ``pull`` ``(D,)`` its gradient.
    """

    white: Array64
    p: Array64
    y: Array64
    prior: Array64
    pull: Array64


def compute_noise_floors(case: Case, epsilons: Sequence[float]) -> Array64:
    """Expected KL in nats for each epsilon, at the declared delta."""
    at = evaluate_at_mode(case)
    return _best(case, epsilons, [_parts(at.white, at.p, at.prior, clip) for clip in _clips(case, CLIPS)])


def compute_table_floors(case: Case, epsilons: Sequence[float]) -> Array64:
    """Expected KL in nats of one release of these rows, for each epsilon.

    The release is at the mode of the rows. The expectation is over the noise only.
    """
    at, clips = evaluate_at_mode(case), _clips(case, np.array(TABLE_CLIPS))
    return _best(case, epsilons, [way(at, clip) for way in (_weigh, _clip) for clip in clips])


def evaluate_at_mode(case: Case) -> AtMode:
    """The table at the mode of its posterior, in the posterior's metric."""
    exact = case.exact
    assert exact is not None
    x, y = make_design_rows(case)
    white, p = solve_triangular(exact.factor, x.T, lower=True).T, expit(x @ exact.mean)
    inverse, prior = solve_triangular(exact.factor, np.eye(len(exact.mean)), lower=True), case.problem.prior
    return AtMode(white, p, y, inverse @ prior.precision(exact.mean) @ inverse.T, inverse @ prior.gradient(exact.mean))


def _clips(case: Case, squares: Array64) -> Array64:
    return np.asarray(np.sqrt(squares * case.problem.model.dimension / case.facts.slots))


def _best(case: Case, epsilons: Sequence[float], ways: Sequence[tuple[float, float]]) -> Array64:
    noise, loss = np.array(ways).T
    delta = case.facts.delta
    assert delta is not None
    sigmas = np.array([compute_one_shot_noise(epsilon, delta) for epsilon in epsilons])
    return np.asarray((np.outer(sigmas**2, noise) + loss).min(axis=1))


def _weights(white: Array64, p: Array64, clip: float) -> Array64:
    """Weights ``(n,)`` that bound the score of either label to the norm ``clip``."""
    return np.asarray(np.minimum(1, clip / (np.maximum(p, 1 - p) * np.sqrt(np.vecdot(white, white)))))


def _parts(white: Array64, p: Array64, prior: Array64, clip: float) -> tuple[float, float]:
    """The KL from noise with a noise multiplier of one, and that from weights."""
    weight = _weights(white, p, clip)
    full, first, second = ((white * (weight**k * p * (1 - p))[:, None]).T @ white for k in range(3))
    inverse = np.linalg.inv(first + prior)
    residual = second - first @ np.linalg.pinv(full, hermitian=True) @ first
    return 0.5 * clip**2 * float(np.sum(inverse**2)), 0.5 * float(np.sum((inverse @ residual) * inverse))


def _weigh(at: AtMode, clip: float) -> tuple[float, float]:
    """The KL from noise with a noise multiplier of one, and that from bounding."""
    white, p, y, prior, pull = at
    weight = _weights(white, p, clip)
    inverse = np.linalg.inv((white * (weight * p * (1 - p))[:, None]).T @ white + prior)
    step = inverse @ (white.T @ (weight * (y - p)) + pull)
    return 0.5 * clip**2 * float(np.sum(inverse**2)), 0.5 * float(step @ step)


def _clip(at: AtMode, clip: float) -> tuple[float, float]:
    """The same with clipped scores and the full information."""
    white, p, y, prior, pull = at
    length = np.abs(y - p) * np.sqrt(np.vecdot(white, white))
    step = white.T @ (np.minimum(1, clip / np.maximum(length, np.finfo(float).tiny)) * (y - p)) + pull
    return 0.5 * clip**2 * len(prior), 0.5 * float(step @ step)


class Scores(NamedTuple):
    """Scores of units at the mode of the full posterior, in its metric.

    ``units`` ``(slots, D)`` are sums of scores. ``prior`` ``(D, D)`` is the precision of the prior, ``pull`` ``(D,)``
    its gradient. ``draw(clip)`` gives the sum ``(D,)`` of bounded scores and their information ``(D, D)``; it is None
    for families without a target and for units of several rows.
    """

    units: Array64
    prior: Array64
    pull: Array64
    draw: Callable[[float], tuple[Array64, Array64]] | None


def compute_release_floors(case: Case, epsilons: Sequence[float]) -> Array64:
    """Expected KL in nats of one release of these rows, for any family."""
    if case.spec.family == "logistic-regression" and case.facts.rows_per_unit == 1:
        return compute_table_floors(case, epsilons)
    scores, ways = score_units(case), []
    for clip in _clips(case, np.array(TABLE_CLIPS)):
        ways += [_clip_units(scores, clip), *_bound_rows(scores, clip)]
    return _best(case, epsilons, ways)


def score_units(case: Case) -> Scores:
    """Compute the scores of a case with an exact posterior."""
    exact, (model, design, prior) = case.exact, case.problem
    assert exact is not None
    x, y, present = design.encode(case.source.gather(np.arange(case.source.slots)))
    inverse = solve_triangular(exact.factor, np.eye(len(exact.mean)), lower=True)

    def score(targets: Array64) -> Array64:
        white = model.scores(model.fold(x, targets), exact.mean).astype(np.float64) @ inverse.T
        return np.asarray(np.where(present[:, None], white, 0.0))

    def draw(clip: float) -> tuple[Array64, Array64]:
        targets = np.where(
            present, model.sample_targets(np.random.default_rng(0), x.astype(np.float64), exact.mean), 0.0
        )
        bounded = model.bounded_scores(model.fold(x, targets), exact.mean, inverse, clip).astype(np.float64)
        information = np.where(present[:, None], bounded, 0.0).T @ score(targets)
        answers = model.bounded_scores(model.fold(x, y), exact.mean, inverse, clip).astype(np.float64)
        return answers[present].sum(axis=0), (information + information.T) / 2

    units = score(y).reshape(case.facts.slots, case.source.rows_per_slot, -1).sum(axis=1)
    can_draw = design.target is not None and case.source.rows_per_slot == 1
    precision, pull = inverse @ prior.precision(exact.mean) @ inverse.T, inverse @ prior.gradient(exact.mean)
    return Scores(units, precision, pull, draw if can_draw else None)


def _clip_units(scores: Scores, clip: float) -> tuple[float, float]:
    length = np.sqrt(np.vecdot(scores.units, scores.units))
    factors = np.minimum(1, clip / np.maximum(length, np.finfo(float).tiny))
    step = factors @ scores.units + scores.pull
    return 0.5 * clip**2 * len(step), 0.5 * float(step @ step)


def _bound_rows(scores: Scores, clip: float) -> Iterator[tuple[float, float]]:
    """Yields the parts of the KL if the information is positive definite."""
    if scores.draw is None:
        return
    answer, information = scores.draw(clip)
    values, vectors = np.linalg.eigh(information + scores.prior)
    if values[0] > 0:
        step = (vectors.T @ (answer + scores.pull)) / values
        yield 0.5 * clip**2 * float(np.sum(values**-2.0)), 0.5 * float(step @ step)
