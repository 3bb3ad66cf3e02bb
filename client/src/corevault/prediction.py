"""Predictions for new rows of each family, under a normal distribution of the coefficients.

The predictors of a row are linear in the coefficients, so they are normal too. Each family averages its link over them.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, ndtr, ndtri, softmax

from corevault._arguments import describe, require_number
from corevault.design import DesignColumn
from corevault.errors import InvalidArgument, WrongType
from corevault.replies.release import Release

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Outcome:
    """The quantity that a model predicts, given by its ``family`` and the design's ``columns``.

    ``classes`` are the categories of a categorical target. ``center`` and ``half`` map the linear predictor to the
    target's units. ``design`` describes the columns, and is empty for an object that you constructed.
    ``has_unknown_noise`` is True if the last parameter is ``log_noise_scale``.
    """

    family: str
    columns: tuple[str, ...]
    classes: tuple[str, ...] = ()
    center: float = 0.0
    half: float = 1.0
    design: tuple[DesignColumn, ...] = ()
    has_unknown_noise: bool = False


def outcome_of(release: Release) -> Outcome:
    """The outcome of the model of ``release``."""
    transform: Mapping[str, Any] = release.model.target_transform or {}
    is_affine = transform.get("kind") == "affine"
    return Outcome(
        family=release.model.family,
        columns=tuple(column.name for column in release.design),
        classes=tuple(str(name) for name in transform.get("categories", ())),
        center=float(transform["center"]) if is_affine else 0.0,
        half=float(transform["scale"]) if is_affine else 1.0,
        design=release.design,
        has_unknown_noise=is_affine and release.model.noise_scale is None,
    )


def predict_probability(outcome: Outcome, mean: Array, covariance: Array, x: object) -> Array:
    """The probability of a 1, ``(n,)``, or of each class, ``(n, K)``; see ``Gaussian.predict_probability``."""
    if outcome.family == "multinomial-logistic":
        return _class_probabilities(outcome, mean, covariance, _design(outcome, x))
    link = _PROBABILITIES.get(outcome.family)
    if link is None:
        raise InvalidArgument(f"{outcome.family} has no probabilities{_INSTEAD.get(outcome.family, '')}.")
    return link(*_predictor(mean, covariance, _design(outcome, x)))


def predict_mean(outcome: Outcome, mean: Array, covariance: Array, x: object) -> Array:
    """The expected target, ``(n,)``; see ``Gaussian.predict_mean``."""
    link = _PROBABILITIES.get(outcome.family) or _MEANS.get(outcome.family)
    if link is None:
        raise InvalidArgument(f"{outcome.family} has no mean to predict{_INSTEAD.get(outcome.family, '')}.")
    return outcome.center + outcome.half * link(*_predictor(mean, covariance, _design(outcome, x)))


def predict_rows(outcome: Outcome, mean: Array, covariance: Array, x: object, level: float) -> list[dict[str, Any]]:
    """One row of predictions for each row of ``x``; see ``Gaussian.predict``."""
    if outcome.family == "multinomial-logistic":
        probabilities = predict_probability(outcome, mean, covariance, x)
        names = [f"probability={name}" for name in outcome.classes]  # a category may have the name of a column
        return [
            {"class": outcome.classes[row.argmax()]} | dict(zip(names, row.tolist(), strict=True))
            for row in probabilities
        ]
    if outcome.family not in _INVERSE_LINKS:
        raise InvalidArgument(f"{outcome.family} predicts no rows{_INSTEAD.get(outcome.family, '')}.")
    inverse = _INVERSE_LINKS[outcome.family]
    location, variance = _predictor(mean, covariance, _design(outcome, x))
    half = find_quantile(level) * np.sqrt(variance)
    low, high = (outcome.center + outcome.half * inverse(location + sign * half) for sign in (-1.0, 1.0))
    name = "probability" if outcome.family in _PROBABILITIES else "mean"
    columns = predict_mean(outcome, mean, covariance, x), low, high
    return [dict(zip((name, "low", "high"), row, strict=True)) for row in np.column_stack(columns).tolist()]


def find_quantile(level: float) -> float:
    """The half width of a central interval of ``level`` in standard deviations."""
    require_number(level, "level")
    if not 0 < level < 1:
        raise InvalidArgument("level must be between 0 and 1, such as 0.95.")
    return float(ndtri(0.5 + 0.5 * level))


_INSTEAD: Final = {
    "poisson-regression": "; use predict_mean, the expected count",
    "negative-binomial-regression": "; use predict_mean, the expected count",
    "linear-regression": "; use predict_mean, the expected target",
    "student-t-regression": "; use predict_mean, the expected target",
    "multinomial-logistic": "; use predict_probability, which has one column for each class",
    "gaussian-mean": ": it has no target; its parameters are the mean, see summary()",
}


def _logistic(location: Array, variance: Array) -> Array:
    """The approximation of MacKay (1992), which shrinks the logit by ``1/√(1 + π s²/8)``."""
    probability: Array = expit(location / np.sqrt(1.0 + np.pi * variance / 8.0))
    return probability


def _probit(location: Array, variance: Array) -> Array:
    probability: Array = ndtr(location / np.sqrt(1.0 + variance))
    return probability


def _log_link(location: Array, variance: Array) -> Array:
    rate: Array = np.exp(location + 0.5 * variance)
    return rate


def _linear(location: Array, variance: Array) -> Array:  # noqa: ARG001 - the mean does not depend on it
    return location


_Link = Callable[[Array, Array], Array]
_PROBABILITIES: Final[Mapping[str, _Link]] = {"logistic-regression": _logistic, "probit-regression": _probit}
_MEANS: Final[Mapping[str, _Link]] = {
    "poisson-regression": _log_link,
    "negative-binomial-regression": _log_link,
    "linear-regression": _linear,
    "student-t-regression": _linear,
}


_INVERSE_LINKS: Final[Mapping[str, Callable[[Array], Array]]] = {
    "logistic-regression": expit,
    "probit-regression": ndtr,
    "poisson-regression": np.exp,
    "negative-binomial-regression": np.exp,
    "linear-regression": np.asarray,
    "student-t-regression": np.asarray,
}


def _predictor(mean: Array, covariance: Array, x: Array) -> tuple[Array, Array]:
    """Mean and variance ``(n,)`` of the linear predictor, which depends on coefficients only."""
    width = x.shape[1]
    return x @ mean[:width], np.einsum("np,pq,nq->n", x, covariance[:width, :width], x)


def _class_probabilities(outcome: Outcome, mean: Array, covariance: Array, x: Array) -> Array:
    """The probabilities ``(n, K)``, with MacKay's shrinkage of each logit against the first class."""
    if not outcome.classes:
        raise InvalidArgument("The release does not name the classes of its target, so it predicts no probabilities.")
    width, logits = x.shape[1], np.zeros((len(x), len(outcome.classes)))
    for index in range(1, len(outcome.classes)):
        block = slice((index - 1) * width, index * width)
        location, variance = _predictor(mean[block], covariance[block, block], x)
        logits[:, index] = location / np.sqrt(1.0 + np.pi * variance / 8.0)
    probabilities: Array = softmax(logits, axis=1)
    return probabilities


def _design(outcome: Outcome, x: object) -> Array:
    """``x`` as a design matrix ``(n, p)``. Raises ``InvalidArgument`` for a matrix of another model."""
    sentence = "x must be a design matrix (n, p), such as core.design_matrix(rows) of new rows"
    names = [str(name) for name in getattr(x, "columns", ())]
    if names and names != list(outcome.columns):
        raise WrongType(f"{sentence}; got a table with other columns.")
    try:
        matrix = np.asarray(x, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise WrongType(f"{sentence}; {describe(x)}.") from error
    if matrix.ndim != 2 or matrix.shape[1] != len(outcome.columns):
        raise InvalidArgument(f"{sentence}; p is {len(outcome.columns)}, but the shape is {matrix.shape}.")
    if outcome.columns[-1] == "intercept" and not (np.isnan(matrix[:, -1]) | (matrix[:, -1] == 1.0)).all():
        raise InvalidArgument(f"{sentence}; its last column is the intercept and must be 1.")
    return matrix
