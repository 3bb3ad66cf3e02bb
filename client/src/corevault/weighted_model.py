"""A released model with weighted rows: the single source of every posterior and every exported program."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from corevault.errors import InvalidArgument
from corevault.likelihoods import (
    CURVES,
    Likelihood,
    Mean,
    Multinomial,
    OnePredictor,
    Shape,
    UnknownNoise,
    make_curve,
    negative_binomial,
    normal,
    student_t,
)
from corevault.prior import CoefficientPrior, means_of, scales_of
from corevault.replies.release import Prior, Release, ReleasedModel

Array = NDArray[np.float64]
_NOISY = frozenset({"linear-regression", "student-t-regression"})


@dataclass(frozen=True, eq=False)
class WeightedModel:
    """A model family with weighted rows and its prior.

    The rows are ``x`` ``(n, p)``, with targets ``y`` ``(n,)`` and ``weight`` ``(n,)``.

    Targets of linear and Student-t regression are in coordinates where the declared bounds are −1 and 1, and so is
    their ``noise``. It is None if the noise is unknown; the last parameter is then ``log_noise_scale``. ``classes`` is
    the number of classes of a categorical target. ``white`` ``(p, p)`` whitens the noise of a mean whose covariance is
    stated.
    """

    family: str
    names: tuple[str, ...]
    x: Array
    y: Array
    weight: Array
    prior: CoefficientPrior
    noise: float | None = None
    noise_degrees_of_freedom: float | None = None
    dispersion: float | None = None
    classes: int = 0
    white: Array | None = None

    @property
    def has_unknown_noise(self) -> bool:
        """Whether the last parameter is ``log_noise_scale``."""
        return self.family in _NOISY and self.noise is None

    def likelihood(self) -> Likelihood:
        """The weighted log-likelihood with its derivatives."""
        x, y, weight = self.x, self.y, self.weight
        if self.family == "multinomial-logistic":
            return Multinomial(self.classes, x, y, weight)
        if self.family == "gaussian-mean":
            white = np.eye(x.shape[1]) / (self.noise or 1.0) if self.white is None else self.white
            return Mean(white.T @ white, x, weight)
        if self.dispersion is not None:
            return OnePredictor(negative_binomial(self.dispersion), x, y, weight)
        if self.family in CURVES:
            return OnePredictor(CURVES[self.family], x, y, weight)
        if self.noise is None:
            return UnknownNoise(self._shape(), x, y, weight)
        return OnePredictor(make_curve(self.noise, self._shape()), x, y, weight)

    def _shape(self) -> Shape:
        return normal if self.noise_degrees_of_freedom is None else student_t(self.noise_degrees_of_freedom)


def weigh_model(release: Release, x: Array, y: Array, weight: Array) -> WeightedModel:
    """The model of ``release`` with the given rows; ``y`` has the units of the points.

    Raises ``InvalidArgument`` for a family that this version does not support.
    """
    model, columns = release.model, [column.name for column in release.design]
    transform = model.target_transform or {}
    if model.family in CURVES or model.family == "gaussian-mean":
        noise = (model.noise_scale or 1.0) if model.family == "gaussian-mean" else None
        prior, white = _prior(release, columns), _whiten(model.noise_covariance, columns)
        return WeightedModel(model.family, tuple(columns), x, y, weight, prior, noise=noise, white=white)
    if model.family == "negative-binomial-regression" and model.dispersion is not None:
        prior = _prior(release, columns)
        return WeightedModel(model.family, tuple(columns), x, y, weight, prior, dispersion=model.dispersion)
    if model.family in _NOISY and transform.get("kind") == "affine":
        half = float(transform["scale"])
        names = columns if model.noise_scale is not None else [*columns, "log_noise_scale"]
        return WeightedModel(
            model.family,
            tuple(names),
            x,
            (y - float(transform["center"])) / half,
            weight,
            _prior(release, names),
            noise=None if model.noise_scale is None else model.noise_scale / half,
            noise_degrees_of_freedom=_noise_degrees(model),
        )
    if model.family == "multinomial-logistic" and transform.get("kind") == "index":
        classes = [str(name) for name in transform["categories"]]
        names = [f"{name}:{column}" for name in classes[1:] for column in columns]
        prior = _prior(release, names, predictors=len(classes) - 1)
        return WeightedModel(model.family, tuple(names), x, y, weight, prior, classes=len(classes))
    raise InvalidArgument(f"This version has no Laplace approximation of {model.family!r}; upgrade corevault.")


def make_prior(release: Release) -> CoefficientPrior:
    """The prior of the parameters of ``release``, in the order of ``core.posterior().names``."""
    nothing = np.zeros(0)
    return weigh_model(release, np.zeros((0, len(release.design))), nothing, nothing).prior


def _prior(release: Release, names: Sequence[str], predictors: int = 1) -> CoefficientPrior:
    prior, design = release.model.prior or Prior(), release.design
    scales = scales_of(names, design, predictors, prior.scale, prior.scales or {})
    mean = means_of(names, design, predictors, prior.mean or {})
    return CoefficientPrior(scales, prior.degrees_of_freedom, predictors * len(design), mean)


def _whiten(stated: Mapping[str, Mapping[str, float]] | None, names: Sequence[str]) -> Array | None:
    """The matrix that whitens noise of the stated covariance; None without one."""
    if stated is None:
        return None
    pairs = {(one, other): value for one, row in stated.items() for other, value in row.items()}
    covariance = np.array([[pairs.get((one, other), pairs.get((other, one), 0.0)) for other in names] for one in names])
    return np.asarray(np.linalg.inv(np.linalg.cholesky(covariance)))


def _noise_degrees(model: ReleasedModel) -> float | None:
    """The degrees of freedom of Student-t noise. Raises ``InvalidArgument`` if the release does not state them."""
    if model.family == "linear-regression":
        return None
    if model.degrees_of_freedom is None:
        raise InvalidArgument("The release does not state the degrees of freedom of its noise.")
    return model.degrees_of_freedom
