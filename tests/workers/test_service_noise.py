"""The noise of a run in the service is the noise of its plan."""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from app.inference.core.facts import Column, DeclaredFacts
from app.inference.core.model import Array64
from app.inference.core.plan import Mechanism, MechanismPlan, ModelSpec, PlannedQuery, PlanRequest
from app.inference.core.row_source import PRESENT
from app.inference.private_zone.mechanisms import GRID
from app.inference.private_zone.oracle import ClippedGaussianOracle
from app.inference.private_zone.queries import PotentialSum
from app.inference.registry import find_method
from app.privacy.events import AtomicEvent, GaussianEvent, PoissonSampledEvent
from support.table import Table
from workers import computation

FACTS = DeclaredFacts((Column("x", "real", -1, 1), Column("y", "binary")), 10, {"kind": "row"}, "private", 1e-6)
EMPTY = Table({"x": np.zeros(10), "y": np.zeros(10), PRESENT: np.zeros(10, dtype=np.uint8)})
CLIP = 0.75
LENGTH, COUNT = 200, 200
CHANCE = 5e-10


def _plan(event: AtomicEvent) -> MechanismPlan:
    """A plan whose values are enough to detect a two per cent error."""
    mechanism = Mechanism(3.0, 1.0, 10)
    request = PlanRequest("dp-psvi", 3, ModelSpec("logistic-regression", ("x",), "y"), mechanism=mechanism)
    queries = (PlannedQuery("potential_sum", LENGTH, event, COUNT),)
    return replace(find_method("dp-psvi").plan(request, FACTS), queries=queries)


def _answers(plan: MechanismPlan) -> Iterator[Array64]:
    oracle = computation.make_oracle(plan, FACTS, EMPTY, None)
    assert isinstance(oracle, ClippedGaussianOracle)
    for _ in range(COUNT):
        yield oracle.ask(PotentialSum(np.zeros((LENGTH, 2)), CLIP))


@pytest.mark.parametrize("event", [GaussianEvent(3.0), PoissonSampledEvent(0.5, GaussianEvent(700.0))])
def test_answers_on_an_empty_table_have_the_planned_noise(event: AtomicEvent) -> None:
    """W7: a chi-square test over 40,000 values.

    It fails by chance less than once in 10**9 runs, and 4 % less noise makes it fail.
    """
    noise = event.noise_multiplier if isinstance(event, GaussianEvent) else event.event.noise_multiplier
    drawn = np.concatenate(list(_answers(_plan(event)))) / (noise * CLIP)
    assert CHANCE < stats.chi2.cdf(float(np.sum(np.square(drawn))), len(drawn)) < 1 - CHANCE
    assert stats.kstest(drawn, "norm").pvalue > CHANCE
    assert np.unique(drawn).size > 0.99 * drawn.size


def test_answers_are_multiples_of_the_grid() -> None:
    """W7: certificates state this grid, so the noise must be rounded to it."""
    (answer, *_) = _answers(_plan(GaussianEvent(3.0)))
    steps = answer / (CLIP / GRID)
    np.testing.assert_array_equal(steps, np.rint(steps))
