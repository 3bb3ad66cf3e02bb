"""Which faults of an oracle may show: those of the query, never those among the rows."""

from typing import cast

import numpy as np
import pytest

from app.inference.core.facts import Column, DeclaredFacts
from app.inference.core.model import Array64
from app.inference.core.plan import Mechanism, ModelSpec, PlanRequest
from app.inference.core.query import Query
from app.inference.core.row_source import PRESENT
from app.inference.private_zone.mechanisms import BadQuery
from app.inference.private_zone.oracle import ClippedGaussianOracle, PlanExhausted
from app.inference.private_zone.queries import PotentialSum
from app.inference.registry import method
from support.table import Table
from workers.computation import EnclaveFault, GuardedOracle, compute

METHOD = "dp-psvi-surrogate"


class Failing:
    """An oracle whose every answer is the same error."""

    def __init__(self, error: Exception) -> None:
        self._error = error

    def ask(self, query: Query) -> Array64:
        raise self._error


def _ask(error: Exception) -> None:
    GuardedOracle(cast("ClippedGaussianOracle", Failing(error))).ask(PotentialSum(np.zeros((2, 2)), 1.0))


@pytest.mark.parametrize("error", [ValueError("a row"), ZeroDivisionError(), IndexError(), FloatingPointError()])
def test_a_fault_among_the_rows_is_the_enclaves_whatever_its_class(error: Exception) -> None:
    """W14: also one that shares its class with a bad query's base; and nothing of it is passed on."""
    with pytest.raises(EnclaveFault) as raised:
        _ask(error)
    assert str(raised.value) == ""
    assert raised.value.__suppress_context__


@pytest.mark.parametrize("error", [BadQuery("draws"), PlanExhausted("beyond"), MemoryError()])
def test_a_fault_of_the_query_may_show(error: Exception) -> None:
    with pytest.raises(type(error)):
        _ask(error)


@pytest.mark.parametrize("rounds", [2, 40])
def test_the_most_noise_that_may_be_asked_for_is_drawn(rounds: int) -> None:
    """A query of the least share has the most noise: were it more than the grid bears, the account would freeze."""
    columns = (Column("x", "real", -1, 1), Column("y", "binary"))
    facts = DeclaredFacts(columns, 100, {"kind": "row"}, "private", 1e-6)
    mechanism = Mechanism(1e6, 1.0, 3 + 2 * rounds)
    request = PlanRequest(METHOD, 3, ModelSpec("logistic-regression", ("x",), "y"), mechanism=mechanism)
    plan = method(METHOD).plan(request, facts)
    rows = Table({"x": np.ones(100), "y": np.ones(100), PRESENT: np.ones(100, dtype=np.uint8)})
    _, executed = compute(plan, facts, rows, lambda _: None)
    assert executed == plan.events
