"""Faults of a query may be reported; faults in the computation on rows may not."""

from typing import cast

import numpy as np
import pytest

from app.inference.core.facts import Column, DeclaredFacts
from app.inference.core.model import Array64
from app.inference.core.plan import ModelSpec, PlanRequest
from app.inference.core.query import Query
from app.inference.core.row_source import PRESENT
from app.inference.private_zone.mechanisms import BadQuery
from app.inference.private_zone.oracle import ClippedGaussianOracle, PlanExhausted
from app.inference.private_zone.queries import PotentialSum
from app.inference.registry import find_method
from support.table import Table
from workers.computation import EnclaveFault, GuardedOracle, compute

METHOD = "dp-psvi-surrogate"


class Failing:
    """An oracle that always raises the same error."""

    def __init__(self, error: Exception) -> None:
        self._error = error

    def ask(self, query: Query) -> Array64:
        raise self._error


def _ask(error: Exception) -> None:
    GuardedOracle(cast("ClippedGaussianOracle", Failing(error))).ask(PotentialSum(np.zeros((2, 2)), 1.0))


@pytest.mark.parametrize("error", [ValueError("a row"), ZeroDivisionError(), IndexError(), FloatingPointError()])
def test_fault_on_rows_becomes_an_enclave_fault_without_details(error: Exception) -> None:
    """W14: this includes ``ValueError``, the base class of a bad query's error."""
    with pytest.raises(EnclaveFault) as raised:
        _ask(error)
    assert str(raised.value) == ""
    assert raised.value.__suppress_context__


@pytest.mark.parametrize("error", [BadQuery("draws"), PlanExhausted("beyond"), MemoryError()])
def test_fault_of_a_query_is_raised_unchanged(error: Exception) -> None:
    with pytest.raises(type(error)):
        _ask(error)


@pytest.mark.parametrize("rounds", [2, 40])
@pytest.mark.long
def test_plan_with_the_most_noise_is_carried_out(rounds: int) -> None:
    """The query with the smallest share has the most noise; beyond the grid's range the account would freeze."""
    columns = (Column("x", "real", -1, 1), Column("y", "binary"))
    facts = DeclaredFacts(columns, 100, {"kind": "row"}, "private", 1e-6)
    spec = ModelSpec("logistic-regression", ("x",), "y")
    request = PlanRequest(METHOD, 3, spec, {"rounds": rounds}, noise_multiplier=1e6)
    plan = find_method(METHOD).plan(request, facts)
    rows = Table({"x": np.ones(100), "y": np.ones(100), PRESENT: np.ones(100, dtype=np.uint8)})
    _, executed = compute(plan, facts, rows, lambda _: None)
    assert executed == plan.events
