"""The posterior of a released model on weighted rows: the release's own points, or a table of one's own."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from corevault.design import DesignColumn
from corevault.gaussian import Gaussian
from corevault.laplace import check, newton
from corevault.likelihoods import CURVES, Likelihood, Mean, Multinomial, OnePredictor, UnknownNoise, linear
from corevault.prior import CoefficientPrior, scales_of
from corevault.replies.release import Prior, Release, ReleasedModel

Array = NDArray[np.float64]


def posterior(release: Release, x: Array, y: Array | None = None, weight: Array | None = None) -> Gaussian:
    """The Laplace approximation of the posterior of the release's model, under its prior.

    ``x`` ``(n, p)`` are rows in the design's coordinates; ``y`` ``(n,)`` targets as in the points (0 and 1, the index
    of a class in declared order, or the target's own units), None for a model without a target; ``weight`` ``(n,)``
    is non-negative (ones where absent). For ``gaussian-mean`` under a normal prior it is exact.

    Parameters are named after the design's columns, with ``class:`` before them for each class but the first of
    ``multinomial-logistic``, and ``log_noise_scale`` (the logarithm of four times the noise over the target's half
    range) at the end for ``linear-regression`` of unknown noise.

    Raises ``ValueError`` for a family that this version does not know, or for arrays that do not fit.
    """
    model, columns = release.model, [column.name for column in release.design]
    weights = np.ones(len(x)) if weight is None else weight
    if (y is None) is not (model.family == "gaussian-mean"):
        raise ValueError("The model's target is missing, or it has none.")
    targets = np.zeros(len(x)) if y is None else y
    check(x, targets, weights)
    if x.shape[1] != len(columns):
        raise ValueError("x must have the release's design columns.")
    likelihood, names, predictors = _likelihood(model, columns, x, targets, weights)
    return newton(likelihood, _prior(model.prior or Prior(), names, release.design, predictors), names)


def _prior(prior: Prior, names: Sequence[str], design: Sequence[DesignColumn], predictors: int) -> CoefficientPrior:
    scales = scales_of(names, design, predictors, prior.scale, prior.scales or {})
    return CoefficientPrior(scales, prior.degrees_of_freedom, predictors * len(design))


def _likelihood(
    model: ReleasedModel, columns: list[str], x: Array, y: Array, weight: Array
) -> tuple[Likelihood, list[str], int]:
    """The likelihood, its parameters' names, and how many predictors it has."""
    if model.family in CURVES:
        return OnePredictor(CURVES[model.family], x, y, weight), columns, 1
    if model.family == "gaussian-mean":
        return Mean(model.noise_scale or 1.0, x, weight), columns, 1
    transform = model.target_transform or {}
    if model.family == "linear-regression" and transform.get("kind") == "affine":
        center, half = float(transform["center"]), float(transform["scale"])
        if model.noise_scale is None:
            return UnknownNoise(x, (y - center) / half, weight), [*columns, "log_noise_scale"], 1
        return OnePredictor(linear(model.noise_scale / half), x, (y - center) / half, weight), columns, 1
    if model.family == "multinomial-logistic" and transform.get("kind") == "index":
        classes = [str(name) for name in transform["categories"]]
        names = [f"{name}:{column}" for name in classes[1:] for column in columns]
        return Multinomial(len(classes), x, y, weight), names, len(classes) - 1
    raise ValueError(f"No Laplace approximation here for {model.family!r}.")
