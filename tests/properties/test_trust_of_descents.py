"""Descents that start far away are trusted only if they have converged.

The bounds are far wider than the rows.
"""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from randomgen import ChaCha
from scipy.special import expit

from app.inference.core.plan import MechanismPlan, PlanRequest, PriorSpec
from app.inference.core.release import Pseudocoreset
from app.inference.methods.dp_vi import release
from app.inference.private_zone.oracle import ClippedGaussianOracle
from app.inference.registry import find_method
from app.inference.runner import run_points
from support.surrogate_tables import FAMILIES, Case, Drawn, compute_losses
from support.table import Table

pytestmark = pytest.mark.long

SLOTS, RUNS = 1000, 3


class _CentralRows(Case):
    """Rows at the centre of bounds 16 standard deviations away, under a wide prior."""

    def table(self) -> Table:
        """No null rows."""
        rng = np.random.default_rng(self.seed)
        x = rng.standard_normal((self.slots, self.features))
        y = rng.random(self.slots) < expit(x @ rng.standard_normal(self.features) - 1.5)
        columns = {f"x{j}": np.clip(x[:, j] / 16, -1, 1) for j in range(self.features)}
        return Table({**columns, "y": y.astype(float), "_present": np.ones(self.slots, dtype=np.uint8)})


def _make_case(features: int, seed: int) -> Case:
    return _CentralRows(features=features, rows=5000, slots=5000, seed=seed, prior=PriorSpec(16.0, {"intercept": 1.0}))


def _plan(name: str, case: Case, sigma: float, size: int = 12, **parameters: Any) -> MechanismPlan:
    return find_method(name).plan(PlanRequest(name, size, case.spec, parameters, None, sigma), case.facts)


def _release(case: Case, plan: MechanismPlan) -> Pseudocoreset:
    sampling = np.random.Generator(ChaCha(key=case.seed))
    oracle = ClippedGaussianOracle(
        case.problem.model, plan, case.facts, case.table(), noise=Drawn(case.seed), sampling=sampling
    )
    return run_points(plan, case.facts, oracle, np.random.default_rng(case.seed), lambda _: None)


def _check_trust(name: str, case: Case, sigma: float, iterations: int = 300) -> bool:
    """Whether a run is trusted; if KL exceeds 50 nats plus ten times the stated noise, it must not be."""
    parameters = {"iterations": iterations} if name == "dp-psvi" else {}
    points = _release(case, _plan(name, case, sigma, **parameters))
    far = not compute_losses(case, points)[0] <= 50 + 10 * points.diagnostics["noise_kl"]
    trusted = bool(points.diagnostics["trusted"])
    assert not (far and trusted)
    return trusted


@pytest.mark.long
@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("name", ["dp-psvi", "dp-vi"])
def test_descent_that_has_not_converged_is_not_trusted(name: str, family: str) -> None:
    rng = np.random.default_rng(3)
    for seed in range(RUNS):
        design = str(rng.choice(["narrow", "zero", "rare", "normal", "uniform"]))
        prior, rows = PriorSpec(float(rng.choice([1.0, 10.0, 100.0]))), int(SLOTS * rng.choice([1, 0.9, 0.5]))
        case = Case(family, design, "drawn", int(rng.choice([1, 3, 6])), rows, SLOTS, seed, prior)
        _check_trust(name, case, float(rng.choice([1.0, 6.0, 25.0, 110.0])))


@pytest.mark.parametrize("family", ["logistic-regression", "gaussian-mean"])
@pytest.mark.parametrize("name", ["dp-psvi", "dp-vi"])
def test_descent_that_has_converged_is_trusted(name: str, family: str) -> None:
    assert _check_trust(name, Case(family, features=2, slots=2000), 2.0)


def test_rates_far_from_those_of_the_declaration_are_not_trusted() -> None:
    """The rows are at one side of wide bounds, under a wide prior."""
    case = Case("poisson-regression", "narrow", "drawn", 6, 900, SLOTS, 22, PriorSpec(100.0))
    assert not _check_trust("dp-psvi", case, 6.0)


def test_descent_of_ten_steps_is_not_trusted() -> None:
    """It has little noise, and starts far from the rows."""
    assert not _check_trust("dp-psvi", Case(features=2, slots=2000), 0.1, iterations=10)


def _release_with_old_clip(case: Case, plan: MechanismPlan) -> Pseudocoreset:
    """Run with the clip of earlier versions, which follows the points alone.

    In wide bounds it shrinks to nearly zero.
    """
    earlier = {name: value for name, value in plan.parameters.items() if name != "least_clip"}
    return _release(case, replace(plan, parameters=earlier))


@pytest.mark.parametrize("seed", [0, 3])
def test_release_is_not_trusted_if_clipping_leaves_only_directions(seed: int) -> None:
    case = _make_case(4, seed)
    plan = _plan("dp-psvi", case, 2.0, 40, iterations=300)
    shrunk, points = _release_with_old_clip(case, plan), _release(case, plan)
    assert shrunk.diagnostics["final_clip"] < 0.1 < points.diagnostics["final_clip"]
    assert compute_losses(case, shrunk)[0] > 50 + 10 * shrunk.diagnostics["noise_kl"]
    assert not shrunk.diagnostics["trusted"]
    kl, prior = compute_losses(case, points)
    assert kl < 0.5 * prior


@pytest.mark.parametrize("seed", [1, 2])
def test_chaotic_descent_with_a_small_clip_is_not_trusted(seed: int) -> None:
    """Rounding decides its diagnostics."""
    case = _make_case(4, seed)
    shrunk = _release_with_old_clip(case, _plan("dp-psvi", case, 2.0, 40, iterations=300))
    assert shrunk.diagnostics["final_clip"] < 0.1
    assert compute_losses(case, shrunk)[0] > 100
    assert not shrunk.diagnostics["trusted"]


@pytest.mark.parametrize(("iterations", "rate"), [(40, 0.5), (100, 0.05), (300, 0.05)])
def test_unfinished_climb_states_its_distance_and_the_last_step_covers_it(
    iterations: int, rate: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Divergences with and without the last step are compared with the stated one."""
    case = _make_case(9, 0)
    plan = _plan("dp-vi", case, 0.05, iterations=iterations, learning_rate=rate)
    points = _release(case, plan)
    monkeypatch.setattr(release, "compute_last_step", lambda *_: (np.zeros(10), 0.0))
    before = _release(case, plan)
    kl, kl_before = compute_losses(case, points)[0], compute_losses(case, before)[0]
    assert 0.5 < before.diagnostics["noise_kl"] / kl_before < 2
    assert kl < 0.5 * kl_before
    assert kl < 2 * points.diagnostics["noise_kl"]


@pytest.mark.long
def test_last_step_that_is_noise_is_not_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    """After convergence the last step does not increase the divergence.

    It is the root mean square of eight runs, compared with runs without the step.
    """
    nats = list[float]()
    for share in (None, 0.0):
        if share is not None:
            monkeypatch.setattr(release, "compute_last_step", lambda *_: (np.zeros(10), 0.0))
        cases = [Case(features=9, rows=5000, slots=5000, seed=seed) for seed in range(8)]
        runs = [compute_losses(case, _release(case, _plan("dp-vi", case, 8.0)))[0] for case in cases]
        nats.append(float(np.sqrt(np.mean(np.square(runs)))))
    assert nats[0] < 1.1 * nats[1]
