"""Descents and climbs that start far away, under bounds far wider than the rows: trusted only where they arrived."""

import numpy as np
import pytest
from randomgen import ChaCha

from app.inference.oracle import ClippedGaussianOracle
from app.inference.protocol import PlanRequest, PriorSpec
from app.inference.registry import method
from app.inference.runner import run
from tests.inference.surrogate.tables import FAMILIES, Case, Drawn, losses

SLOTS, RUNS = 1000, 3


def _trusted_and_near(name: str, case: Case, sigma: float, iterations: int = 300) -> bool:
    """Whether a run is trusted; it must not be, wherever KL exceeds 50 nats and ten times the stated noise."""
    parameters = {"iterations": iterations} if name == "dp-psvi" else {}
    plan = method(name).plan(PlanRequest(name, 12, case.spec, parameters, None, sigma), case.facts)
    sampling = np.random.Generator(ChaCha(key=case.seed))
    oracle = ClippedGaussianOracle(
        case.problem.model, plan, case.facts, case.table(), noise=Drawn(case.seed), sampling=sampling
    )
    points = run(plan, case.facts, oracle, np.random.default_rng(case.seed), lambda _: None)
    far = not losses(case, points)[0] <= 50 + 10 * points.diagnostics["noise_kl"]
    trusted = bool(points.diagnostics["trusted"])
    assert not (far and trusted)
    return trusted


@pytest.mark.parametrize(
    ("name", "family"),
    [("dp-psvi", family) for family in FAMILIES]
    + [("dp-vi", family) for family in FAMILIES if family not in {"linear-regression", "poisson-regression"}],
)
def test_what_has_not_arrived_is_not_trusted(name: str, family: str) -> None:
    """Noise scales and rates can still go astray unseen in ``dp-vi``."""
    rng = np.random.default_rng(3)
    for seed in range(RUNS):
        design = str(rng.choice(["narrow", "zero", "rare", "normal", "uniform"]))
        prior, rows = PriorSpec(float(rng.choice([1.0, 10.0, 100.0]))), int(SLOTS * rng.choice([1, 0.9, 0.5]))
        case = Case(family, design, "drawn", int(rng.choice([1, 3, 6])), rows, SLOTS, seed, prior)
        _trusted_and_near(name, case, float(rng.choice([1.0, 6.0, 25.0, 110.0])))


@pytest.mark.parametrize("family", ["logistic-regression", "gaussian-mean"])
@pytest.mark.parametrize("name", ["dp-psvi", "dp-vi"])
def test_what_has_arrived_is_trusted(name: str, family: str) -> None:
    assert _trusted_and_near(name, Case(family, features=2, slots=2000), 2.0)


def test_rates_far_from_those_of_the_declaration_are_not_trusted() -> None:
    """The rows crowd at one side of wide bounds, under a wide prior."""
    case = Case("poisson-regression", "narrow", "drawn", 6, 900, SLOTS, 22, PriorSpec(100.0))
    assert not _trusted_and_near("dp-psvi", case, 6.0)


def test_a_descent_of_ten_steps_is_not_trusted() -> None:
    """Without much noise, far from the rows."""
    assert not _trusted_and_near("dp-psvi", Case(features=2, slots=2000), 0.1, iterations=10)
