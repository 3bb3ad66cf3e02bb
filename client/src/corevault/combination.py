"""Several releases of one model, as one posterior."""

from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve

from corevault._agreement import find_datasets, list_releases
from corevault.errors import InvalidArgument
from corevault.gaussian import Gaussian, from_precision
from corevault.prediction import outcome_of
from corevault.prior import CoefficientPrior
from corevault.pseudocoreset import Pseudocoreset
from corevault.weighted_model import make_prior

Array = NDArray[np.float64]
_RIDGE = 1e-9  # relative to the posterior's covariance, for noise that is zero or singular


def combine(releases: Iterable[Pseudocoreset], *, same_people: bool = False, independent: bool = False) -> Gaussian:
    """One posterior from several releases of the same model, with the prior counted once.

    By default the releases must be about **different people**, so that their likelihoods are independent. The result is
    the product of the likelihoods and one prior, all in normal approximation. The noise of a release makes its
    likelihood wider, so a noisy release has little weight.

    The stated width holds however the errors of releases depend on each other, as in ``merge``: bounds may cut the rows
    of all tables in the same direction. With ``independent`` the errors are taken as independent. The posterior is then
    narrower, and too narrow if the rows do not follow the model.

    With ``same_people`` the releases are of one table. They have one likelihood, and only their noise differs. The
    result is their mean, weighted by the inverse covariance of the noise.

    >>> from corevault import combine, example
    >>> combine([example(), example()], same_people=True)
    Gaussian(4 coefficients in the design's coordinates, with noise)

    Raises ``InvalidArgument`` for fewer than two releases, for other models, designs or priors, and for a prior with
    unknown scale. Releases of one dataset are refused without ``same_people``.
    """
    cores = _check(releases, same_people=same_people)
    fits = [core.posterior(noise=False) for core in cores]
    noises = [_noise_of(core, len(fit.mean)) for core, fit in zip(cores, fits, strict=True)]
    if not independent:
        noises = bound_noises(fits, noises)
    found = _average(fits, noises) if same_people else _multiply(make_prior(cores[0].release), fits, noises)
    return found.with_outcome(outcome_of(cores[0].release))


def bound_noises(fits: Sequence[Gaussian], noises: Sequence[Array]) -> list[Array]:
    """Widen noises so that their sum by independence bounds the sum of dependent errors."""
    precisions = [_invert(fit.covariance) for fit in fits]
    joint = _invert(sum(precisions, np.zeros_like(precisions[0])))
    moments = [own @ noise @ own for own, noise in zip(precisions, noises, strict=True)]
    return [factor * noise for factor, noise in zip(bound_dependence(joint, moments), noises, strict=True)]


def bound_dependence(joint: Array, moments: Sequence[Array]) -> Array:
    """Factors ``(k,)`` that make a sum of second moments hold for dependent errors.

    Errors with the moments ``A`` have a sum with at most ``sum_k (sum_j s_j / s_k) A_k`` for all ``s > 0``, by Cauchy's
    inequality. The trace of its product with ``joint`` is least if ``s_k**2`` is the trace of ``joint A_k``.
    """
    sizes = np.sqrt([max(float(np.sum(joint * moment)), 0.0) for moment in moments])
    factors = np.ones(len(sizes))
    factors[sizes > 0] = sizes.sum() / sizes[sizes > 0]
    return factors


def _multiply(shared: CoefficientPrior, fits: Sequence[Gaussian], noises: Sequence[Array]) -> Gaussian:
    """The posterior given independent likelihoods.

    A fit of precision P has the likelihood precision ``L = P - prior``. Less the prior's part, ``P mean`` is normal
    around ``L theta`` with covariance ``L + P noise P``. So it contributes the precision ``L (L + P noise P)^-1 L``.
    """
    prior = np.diag(shared.scales**-2.0)
    pull = shared.mean * shared.scales**-2.0
    precision, information = prior.copy(), np.zeros(len(prior)) + pull
    for fit, noise in zip(fits, noises, strict=True):
        own = _invert(fit.covariance)
        likelihood = _clip(own - prior)
        spread = likelihood + own @ noise @ own
        solved = np.linalg.solve(
            spread + _RIDGE * np.diag(np.diag(own)), np.column_stack([likelihood, own @ fit.mean - pull])
        )
        precision += likelihood @ solved[:, :-1]
        information += likelihood @ solved[:, -1]
    root = cho_factor(0.5 * (precision + precision.T), lower=True)
    return from_precision(fits[0].names, cho_solve(root, information), root)


def _average(fits: Sequence[Gaussian], noises: Sequence[Array]) -> Gaussian:
    """The mean of fits of the same rows, with weights from their noise."""
    weights = [_invert(noise + _RIDGE * fit.covariance) for fit, noise in zip(fits, noises, strict=True)]
    noise = _invert(sum(weights, np.zeros_like(weights[0])))
    mean = noise @ sum((weight @ fit.mean for weight, fit in zip(weights, fits, strict=True)), np.zeros(len(noise)))
    covariance = sum((fit.covariance for fit in fits), np.zeros_like(noise)) / len(fits)
    return Gaussian(fits[0].names, mean, covariance).with_noise(Gaussian(fits[0].names, np.zeros(len(mean)), noise))


def _invert(matrix: Array) -> Array:
    inverse: Array = cho_solve(cho_factor(matrix, lower=True), np.eye(len(matrix)))
    return 0.5 * (inverse + inverse.T)


def _clip(matrix: Array) -> Array:
    """``matrix`` without negative eigenvalues, which are rounding errors."""
    values, vectors = np.linalg.eigh(0.5 * (matrix + matrix.T))
    clipped: Array = (vectors * np.maximum(values, 0.0)) @ vectors.T
    return clipped


def _noise_of(core: Pseudocoreset, size: int) -> Array:
    noise = None if core.belief is None else core.belief.noise
    return np.zeros((size, size)) if noise is None else noise.covariance


def _check(releases: object, *, same_people: bool) -> list[Pseudocoreset]:
    cores = list_releases(releases, "combine")
    prior = cores[0].release.model.prior
    if prior is not None and prior.degrees_of_freedom is not None:
        raise InvalidArgument("Releases with a prior of unknown scale (degrees_of_freedom) cannot be combined.")
    listed = [dataset for core in cores for dataset in find_datasets(core)]
    datasets = set(listed)
    if not same_people and len(datasets) < len(listed):
        raise InvalidArgument(
            "Two releases are of the same dataset, so they are about the same people; pass same_people=True to average "
            "releases of one dataset."
        )
    if same_people and len(datasets) > 1:
        raise InvalidArgument("same_people averages releases of one dataset; these are of several datasets.")
    return cores
