"""Several releases as one posterior: the prior counts once, and noise lowers a release's weight."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from corevault import Gaussian, GaussianMean, InvalidArgument, LogisticRegression, Pseudocoreset, Release, combine
from corevault.belief import Belief, Block
from corevault.combination import _multiply, bound_noises
from corevault.prior import CoefficientPrior
from numpy.typing import NDArray

from tests.client.models import MODELS, make_core

MEAN = GaussianMean(features=["age", "hours"])


def _split(core: Pseudocoreset, noises: tuple[float, float] = (0.0, 0.0)) -> list[Pseudocoreset]:
    """The two halves of the points as releases of two datasets. ``noises`` are variances."""
    half, names = len(core.u) // 2, core.laplace().names
    parts = []
    for place, variance in zip((slice(0, half), slice(half, None)), noises, strict=True):
        release = Release.from_json(dict(core.release.raw) | {"dataset_id": f"ds_{place.start}"})
        arrays = {"names": np.array(names), "mean": np.zeros(len(names)), "covariance": variance * np.eye(len(names))}
        y = None if core.y is None else core.y[place]
        belief = Belief((Block("noise", "normal", arrays),))
        parts.append(Pseudocoreset(release, core.u[place], y, core.weight[place], belief))
    return parts


def test_halves_of_a_table_give_the_posterior_of_the_whole() -> None:
    core = make_core(MEAN)
    found = combine(_split(core))
    whole = core.posterior()
    np.testing.assert_allclose(found.mean, whole.mean, atol=1e-6)
    np.testing.assert_allclose(found.covariance, whole.covariance, rtol=1e-6)
    logistic = make_core(LogisticRegression(features=["age", "colour"], target="ill"))
    near = combine(_split(logistic))
    assert np.abs((near.mean - logistic.posterior().mean) / logistic.posterior().sd).max() < 0.5


def test_releases_agree_as_far_as_both_state_their_design() -> None:
    """Releases of version 0.1.0 state no types and no reference category."""
    parts = _split(make_core(LogisticRegression(features=["age", "colour"], target="ill")))
    plain = [column | {"transform": dict(column["transform"])} for column in parts[0].release.raw["design"]]
    for column in plain:
        column["transform"].pop("type", None)
        column["transform"].pop("reference", None)
    older = replace(parts[0], release=Release.from_json(dict(parts[0].release.raw) | {"design": plain}))
    expected = combine(parts)
    for pair in ([older, parts[1]], [parts[1], older]):
        np.testing.assert_allclose(combine(pair).mean, expected.mean)
    plain[1]["transform"]["reference"] = "violet"
    other = replace(parts[0], release=Release.from_json(dict(parts[0].release.raw) | {"design": plain}))
    with pytest.raises(InvalidArgument, match="differ in their design"):
        combine([other, parts[1]])


def test_a_release_with_much_noise_has_no_weight() -> None:
    core = make_core(MEAN)
    parts = _split(core, (0.0, 1e8))
    np.testing.assert_allclose(combine(parts).mean, parts[0].posterior().mean, atol=1e-4)
    np.testing.assert_allclose(combine(parts).sd, parts[0].posterior().sd, rtol=1e-3)


@pytest.mark.long
def test_combined_intervals_cover_their_share() -> None:
    """Draws from the assumed model: 95 % intervals hold 95 % of the parameters."""
    rng = np.random.default_rng(6)
    scales, mean, likelihoods = (
        np.array([1.0, 2.0]),
        np.array([0.7, -3.0]),
        [np.diag([3.0, 0.5]), np.array([[1.0, 0.4], [0.4, 2.0]])],
    )
    noises = [np.diag([0.2, 0.05]), 0.4 * np.eye(2)]
    prior, inside = np.diag(scales**-2.0), []
    for _ in range(3000):
        theta, fits = mean + scales * rng.standard_normal(2), []
        for likelihood, noise in zip(likelihoods, noises, strict=True):
            information = prior @ mean + likelihood @ theta + np.linalg.cholesky(likelihood) @ rng.standard_normal(2)
            covariance = np.linalg.inv(prior + likelihood)
            error = np.linalg.cholesky(noise) @ rng.standard_normal(2)
            fits.append(Gaussian(("a", "b"), covariance @ information + error, covariance))
        found = _multiply(CoefficientPrior(scales, mean=mean), fits, noises)
        inside.append(np.abs(found.mean - theta) < 1.96 * found.sd)
    np.testing.assert_allclose(np.mean(inside, axis=0), 0.95, atol=0.015)


@pytest.mark.long
def test_intervals_hold_for_errors_that_are_the_same() -> None:
    """All releases have one error. Independence then states too little."""
    rng = np.random.default_rng(7)
    shared, likelihood, noise = CoefficientPrior(np.ones(2)), 5 * np.eye(2), 0.3 * np.eye(2)
    covariance = np.asarray(np.linalg.inv(np.eye(2) + likelihood), dtype=np.float64)
    squares = {True: list[float](), False: list[float]()}
    for _ in range(2000):
        theta, error = rng.standard_normal(2), np.linalg.cholesky(noise) @ rng.standard_normal(2)
        fits = [
            Gaussian(
                ("a", "b"),
                covariance @ (likelihood @ theta + np.linalg.cholesky(likelihood) @ rng.standard_normal(2)) + error,
                covariance,
            )
            for _ in range(4)
        ]
        for independent, found in squares.items():
            stated = [noise] * 4 if independent else bound_noises(fits, [noise] * 4)
            joint = _multiply(shared, fits, stated)
            found.append(float(np.square((joint.mean - theta) / joint.sd).mean()))
    means = {name: float(np.mean(found)) for name, found in squares.items()}
    assert means[False] < 1.1
    assert means[True] > 1.6


def test_dependence_widens_unequal_noises_by_their_sizes() -> None:
    """The bound is reached: one direction, and errors that are proportional."""
    fits = [Gaussian(("a",), np.zeros(1), np.eye(1)) for _ in range(2)]
    noises = [np.array([[4.0]]), np.array([[1.0]])]
    found = bound_noises(fits, noises)
    assert found[0][0, 0] == pytest.approx(4.0 * 1.5)
    assert found[1][0, 0] == pytest.approx(1.0 * 3.0)
    assert sum(float(each[0, 0]) for each in found) == pytest.approx((2.0 + 1.0) ** 2)
    assert bound_noises(fits, [np.zeros((1, 1))] * 2) == [0.0, 0.0]


def test_releases_of_one_table_are_averaged_by_their_noise() -> None:
    core = make_core(MEAN)
    names = core.laplace().names

    def noisy(variance: float, shift: float) -> Pseudocoreset:
        arrays: dict[str, NDArray[Any]] = {"names": np.array(names), "mean": np.zeros(2)}
        arrays["covariance"] = variance * np.eye(2)
        u = core.u + shift
        return Pseudocoreset(core.release, u, None, core.weight, Belief((Block("noise", "normal", arrays),)))

    first, second = noisy(1.0, 0.0), noisy(3.0, 0.4)
    found = combine([first, second], same_people=True, independent=True)
    expected = 0.75 * first.posterior().mean + 0.25 * second.posterior().mean
    np.testing.assert_allclose(found.mean, expected, atol=1e-6)
    np.testing.assert_allclose(found.covariance, first.posterior(noise=False).covariance + 0.75 * np.eye(2), rtol=1e-6)
    assert found.outcome is not None
    with pytest.raises(InvalidArgument, match="same people"):
        combine([first, second])


def test_unequal_releases_are_refused() -> None:
    core = make_core(MEAN)
    other: Any = make_core(GaussianMean(features=["hours", "age"]))
    apart = _split(core)
    wider = Release.from_json(dict(core.release.raw) | {"model": core.release.raw["model"] | {"prior": {"scale": 3.0}}})
    third = make_core(GaussianMean(features=["age"], degrees_of_freedom=5.0))
    wrong: Any = "rel_1"
    for releases, options, sentence in (
        ([core], {}, "at least two"),
        (wrong, {}, "a list of downloaded releases"),
        ([core, wrong], {}, r"client\.releases\.download"),
        ([core, make_core(MODELS[0])], {}, "differ in their model family"),
        ([core, other], {}, "differ in their design"),
        ([core, Pseudocoreset(wider, core.u, None, core.weight)], {}, "differ in their prior"),
        ([third, third], {}, "unknown scale"),
        (apart, {"same_people": True}, "several datasets"),
    ):
        with pytest.raises(InvalidArgument, match=sentence):
            combine(releases, **options)
