"""The default method finds modes where labels are certain along a wide amount."""

import pytest

from benchmarks.outcomes import Engine, measure_table
from benchmarks.tables import KINDS

_LATER = ("negative binomial", "Student's t")
"""First words of later kinds. Without these kinds, the tables keep their numbers."""
_KINDS = tuple(name for name in KINDS if name == "negative binomial counts" or not name.startswith(_LATER))


@pytest.mark.parametrize(("table", "epsilon"), [(805, 1.0), (278, 3.0)])
def test_search_reaches_steep_slopes(table: int, epsilon: float) -> None:
    """With steps of one size, these releases are more than 1,000 nats wrong."""
    (outcome,) = measure_table(7607, table, _KINDS, (epsilon,), (Engine("dp-psvi-surrogate"),))
    assert outcome.kind == "saturated labels"
    assert outcome.kl < 30
