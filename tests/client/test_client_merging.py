"""Points of several releases as one set: posterior, stated noise, grade and refusals."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from corevault import (
    Gaussian,
    GaussianMean,
    InvalidArgument,
    Pseudocoreset,
    Reason,
    Reliability,
    WrongType,
    combine,
    merge,
)
from corevault.belief import Belief, Block
from corevault.model import ModelRequest
from numpy.typing import NDArray

from tests.client.models import MODELS, make_core

Array = NDArray[np.float64]
MEAN = GaussianMean(features=["age", "hours"])
CALIBRATED = Reliability(grade="calibrated")


def _state(core: Pseudocoreset, noise: Array | None) -> Pseudocoreset:
    """The release, which states this covariance of its noise."""
    if noise is None:
        return replace(core, belief=None)
    names = core.laplace(noise=False).names
    arrays: dict[str, NDArray[Any]] = {"names": np.array(names), "mean": np.zeros(len(names)), "covariance": noise}
    return replace(core, belief=Belief((Block("noise", "normal", arrays),)))


def _split(core: Pseudocoreset, noise: float | None = None, parts: int = 3) -> list[Pseudocoreset]:
    """The points in ``parts``, as releases of several datasets."""
    found = []
    for part in range(parts):
        place = slice(part, None, parts)
        release = replace(core.release, id=f"rel_{part}", dataset_id=f"ds_{part}", reliability=CALIBRATED)
        y = None if core.y is None else core.y[place]
        piece = Pseudocoreset(release, core.u[place], y, core.weight[place])
        size = len(piece.laplace().names)
        found.append(_state(piece, None if noise is None else noise * np.eye(size)))
    return found


@pytest.mark.parametrize("model", MODELS, ids=lambda model: type(model).__name__)
def test_all_points_together_have_the_posterior_of_all_tables(model: ModelRequest) -> None:
    """The prior counts once, also one with an unknown scale."""
    core = make_core(model)
    merged = merge(_split(core), size=len(core.u))
    expected, found = core.laplace(), merged.laplace()
    np.testing.assert_allclose(found.mean, expected.mean, atol=1e-6)
    np.testing.assert_allclose(found.covariance, expected.covariance, rtol=1e-5, atol=1e-9)
    assert merged.release.diagnostics is not None
    assert merged.release.diagnostics["fit_kl"] == 0
    assert merged.release.grade == "calibrated"


@pytest.mark.parametrize("model", MODELS, ids=lambda model: type(model).__name__)
def test_fewer_points_have_nearly_the_same_posterior(model: ModelRequest) -> None:
    """With the prior alone, the divergence would be hundreds of times larger."""
    core = make_core(model)
    merged = merge(_split(core), size=20)
    assert len(merged.u) == len(merged.weight) == merged.release.size <= 20
    assert (merged.y is None) is (core.y is None)
    assert np.all(merged.weight > 0)
    divergence = merged.laplace().kl(core.laplace())
    prior = replace(core, weight=np.zeros_like(core.weight)).laplace()
    assert divergence < 0.01 * prior.kl(core.laplace())
    diagnostics = merged.release.diagnostics
    assert diagnostics is not None
    assert diagnostics["fit_kl"] == pytest.approx(max(divergence, 0), rel=1e-2, abs=1e-6)


def test_a_normal_model_agrees_with_the_combination() -> None:
    parts = _split(make_core(MEAN), 0.0)
    found, expected = merge(parts, size=9, independent=True).posterior(), combine(parts, independent=True)
    np.testing.assert_allclose(found.mean, expected.mean, atol=1e-6)
    np.testing.assert_allclose(found.covariance, expected.covariance, rtol=1e-5)


@pytest.mark.long
@pytest.mark.parametrize("independent", [True, False])
def test_stated_noise_is_the_covariance_of_the_error(independent: bool) -> None:
    """4,000 merges with errors drawn from the stated noises; six standard errors.

    Errors with one direction in all releases are the worst case. The statement without ``independent`` covers it.
    """
    rng, repeats = np.random.default_rng(5), 4000
    parts = [
        replace(part, weight=part.weight * scale)
        for part, scale in zip(_split(make_core(MEAN)), (1, 3, 9), strict=True)
    ]
    noises = [np.diag([0.004, 0.001]), np.array([[0.002, 0.001], [0.001, 0.003]]), 1e-4 * np.eye(2)]
    exact, errors = merge(parts, size=40).laplace(), np.empty((repeats, 2))
    moves = list[np.ndarray]()
    for part, noise in zip(parts, noises, strict=True):
        information = np.linalg.inv(part.laplace().covariance)
        share = part.weight.sum() * np.eye(2)  # the information of the points, for noise one
        moves.append(np.linalg.solve(share, information @ np.linalg.cholesky(noise)))
    for repeat in range(repeats):
        moved, common = [], rng.standard_normal(2)
        for part, move in zip(parts, moves, strict=True):
            error = rng.standard_normal(2) if independent else common
            moved.append(replace(part, u=part.u + move @ error))
        errors[repeat] = merge(moved, size=40).laplace().mean - exact.mean
    noisy = [_state(part, noise) for part, noise in zip(parts, noises, strict=True)]
    stated = merge(noisy, size=40, independent=independent).belief
    assert stated is not None
    assert stated.noise is not None
    root = np.linalg.cholesky(np.linalg.inv(stated.noise.covariance))
    standard = errors @ root
    second = standard.T @ standard / repeats
    values, error = np.linalg.eigvalsh(second), 6 * np.sqrt(2 / repeats)
    assert np.max(values) < 1 + error
    assert np.min(values) > (1 - error if independent else 0.6)


def test_posteriors_include_the_noise_of_all_releases() -> None:
    one, three = merge(_split(make_core(MODELS[0]), 0.01), size=30), make_core(MODELS[0]).laplace()
    posterior = one.posterior()
    assert posterior.noise is not None
    assert np.all(np.diag(posterior.covariance) > np.diag(three.covariance))
    np.testing.assert_allclose(posterior.covariance, three.covariance + posterior.noise, rtol=1e-5, atol=1e-9)


def test_noise_that_one_release_does_not_state_is_unknown() -> None:
    first, second, third = _split(make_core(MEAN), 0.1)
    merged = merge([first, replace(second, belief=None), third], size=10)
    assert merged.belief is None
    assert merged.posterior().noise is None


@pytest.mark.parametrize(
    ("grades", "worst"),
    [
        (("calibrated", "calibrated"), "calibrated"),
        (("calibrated", "centre-only"), "centre-only"),
        (("not-usable", "centre-only"), "not-usable"),
        (("calibrated", "of-a-later-version"), "of-a-later-version"),
    ],
)
def test_the_grade_is_the_worst_with_every_reason_once(grades: tuple[str, ...], worst: str) -> None:
    parts = []
    for part, grade in zip(_split(make_core(MEAN)), grades, strict=False):
        reasons = (Reason(code="few-rows", words="Few."), Reason(code=f"of-{grade}", words="Other."))
        reliability = Reliability(grade=grade, reasons=() if grade == "calibrated" else reasons)
        parts.append(replace(part, release=replace(part.release, reliability=reliability)))
    found = merge(parts, size=20).release.reliability
    assert found is not None
    assert found.grade == worst
    codes = [reason.code for reason in found.reasons]
    assert len(set(codes)) == len(codes)
    assert set(codes) == {code for grade in grades if grade != "calibrated" for code in ("few-rows", f"of-{grade}")}


def test_a_grade_that_one_release_does_not_state_is_unknown() -> None:
    first, second, _ = _split(make_core(MEAN))
    old = replace(second, release=replace(second.release, reliability=None, diagnostics={"trusted": False}))
    release = merge([first, old], size=20).release
    assert (release.reliability, release.trusted) == (None, False)
    older = replace(second, release=replace(second.release, reliability=None))
    assert merge([first, older], size=20).release.trusted is None


def test_too_few_points_are_graded_by_their_divergence() -> None:
    release = merge(_split(make_core(MODELS[0])), size=1).release
    assert release.diagnostics is not None
    assert release.diagnostics["fit_kl"] > 1
    assert release.trusted is False
    assert release.reliability is not None
    assert [reason.code for reason in release.reliability.reasons] == ["points-differ"]


def test_a_stream_of_merges_has_a_bounded_size_and_all_releases() -> None:
    """Merging one by one gives nearly the same posterior and noise."""
    core = make_core(MODELS[0])
    parts = _split(core, 0.001, parts=6)
    rolling = parts[0]
    for part in parts[1:]:
        rolling = merge([rolling, part], size=20)
        assert len(rolling.u) <= 20
    at_once = merge(parts, size=30)
    assert rolling.laplace(noise=False).kl(core.laplace()) < 0.05
    assert rolling.belief is not None
    assert at_once.belief is not None
    assert isinstance(rolling.belief.noise, Gaussian)
    assert isinstance(at_once.belief.noise, Gaussian)
    np.testing.assert_allclose(rolling.belief.noise.sd, at_once.belief.noise.sd, rtol=0.1)
    diagnostics = rolling.release.diagnostics
    assert diagnostics is not None
    assert diagnostics["releases"] == [f"rel_{part}" for part in range(6)]
    for verb in (lambda both: merge(both, 20), combine):
        with pytest.raises(InvalidArgument, match="same people"):
            verb([rolling, parts[2]])


def test_merged_points_state_no_cost_and_no_other_posterior() -> None:
    release = merge(_split(make_core(MEAN)), size=20).release
    assert (release.id, release.method, release.cost, release.posterior) == ("merged", "merge", None, None)


def test_releases_that_do_not_fit_together_are_refused() -> None:
    parts = _split(make_core(MEAN))
    other = make_core(GaussianMean(features=["hours", "age"]))
    wrong: Any = "rel_1"
    half: Any = 2.5
    for releases, size, error, sentence in (
        ([parts[0]], 20, InvalidArgument, "at least two"),
        (wrong, 20, WrongType, "a list of downloaded releases"),
        ([parts[0], wrong], 20, WrongType, r"client\.releases\.download"),
        ([parts[0], make_core(MODELS[0])], 20, InvalidArgument, "differ in their model family; merge"),
        ([parts[0], other], 20, InvalidArgument, "differ in their design"),
        ([parts[0], parts[0]], 20, InvalidArgument, "same people"),
        (parts, 0, InvalidArgument, "size must be at least 1"),
        (parts, half, WrongType, "size must be a whole number"),
        (parts, True, WrongType, "size must be a whole number"),
    ):
        with pytest.raises(error, match=sentence):
            merge(releases, size)


def test_points_without_weight_leave_the_prior() -> None:
    parts = [replace(part, weight=np.zeros_like(part.weight)) for part in _split(make_core(MEAN))]
    merged = merge(parts, size=5)
    np.testing.assert_allclose(merged.laplace().mean, 0, atol=1e-12)
