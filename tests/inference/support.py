"""Small tables, and noise sources that may exist in tests only."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from app.inference.conjugate import make_run_problem
from app.inference.core.facts import Column, DeclaredFacts
from app.inference.core.model import Array64
from app.inference.core.plan import Mechanism, MechanismPlan, ModelSpec, PlanRequest
from app.inference.core.problems import make_problem
from app.inference.core.query import Integers
from app.inference.private_zone.mechanisms import NoiseSource
from app.inference.private_zone.oracle import ClippedGaussianOracle
from app.inference.private_zone.rng import make_sampling_generator
from app.inference.registry import find_method
from support.table import Table

COLUMNS = (
    Column("age", "integer", 20, 80),
    Column("hours", "real", 0, 100),
    Column("colour", "categorical", categories=("red", "green", "blue")),
    Column("smoker", "binary"),
    Column("ill", "binary"),
)
FEATURES = ("age", "hours", "colour", "smoker")
SPEC = ModelSpec("logistic-regression", FEATURES, "ill")
WIDTH = 6  # age, hours, two colours, smoker, intercept


class NullNoise:
    """A noise source without noise: answers are the exact clipped sums."""

    def perturb(self, sums: Integers, scale: float | Array64) -> Integers:
        return sums


def table(n: int, *, slots: int | None = None, seed: int = 0) -> Table:
    """Make ``n`` rows whose target follows a logistic regression, then null rows."""
    rng = np.random.default_rng(seed)
    slots = n if slots is None else slots
    age, hours = rng.integers(20, 81, slots).astype(float), rng.uniform(0, 100, slots)
    colour, smoker = rng.integers(0, 3, slots).astype(np.uint16), rng.integers(0, 2, slots).astype(float)
    logit = (age - 50) / 15 - (hours - 50) / 40 + (colour == 1) + 0.8 * smoker - 0.5
    columns: dict[str, NDArray[Any]] = {
        "age": age,
        "hours": hours,
        "colour": colour,
        "smoker": smoker,
        "ill": (rng.random(slots) < 1 / (1 + np.exp(-logit))).astype(float),
        "_present": (np.arange(slots) < n).astype(np.uint8),
    }
    for values in columns.values():
        values[n:] = 0
    return Table(columns)


def facts(slots: int, *, sensitivity: Any = "private") -> DeclaredFacts:
    return DeclaredFacts(COLUMNS, slots, {"kind": "row"}, sensitivity, 1e-6)


def plan(
    slots: int, *, iterations: int = 3, rate: float = 1.0, noise: float = 1.0, draws: int = 4, size: int = 8
) -> MechanismPlan:
    request = PlanRequest("dp-psvi", size, SPEC, {"posterior_draws": draws}, Mechanism(noise, rate, iterations))
    return find_method("dp-psvi").plan(request, facts(slots))


def oracle(
    source: Table, planned: MechanismPlan, noise: NoiseSource | None = None, sampling: np.random.Generator | None = None
) -> ClippedGaussianOracle:
    return ClippedGaussianOracle(
        make_run_problem(planned, facts(source.slots)).model,
        planned,
        facts(source.slots),
        source,
        noise=noise or NullNoise(),
        sampling=sampling or make_sampling_generator(),
    )


MODEL, DESIGN = make_problem(SPEC, facts(10)).model, make_problem(SPEC, facts(10)).design
