"""The filter that is proven in tests/properties is the filter that runs: the ledger's meters decide alike."""

from hypothesis import given
from hypothesis import strategies as st

from app.ledger.meter import Pot, filter_pot
from app.privacy.accounting import INFINITE
from app.privacy.filter import Filter, design

LIMITS = st.sampled_from([(0.1, 1e-6), (0.4, 1e-8), (1.0, 1e-6), (5.0, 1e-5), (20.0, 1e-9)])


def charges(rule: Filter) -> st.SearchStrategy[tuple[int, ...]]:
    """Amounts around the bounds, one apart from them, tiny and infinite."""
    each = [
        st.one_of(
            st.integers(1, 2 * bound),
            st.sampled_from([1, bound, bound + 1, max(1, bound - 1), INFINITE]),
        )
        for bound in rule.bounds()
    ]
    return st.tuples(*each)


@given(st.data())
def test_a_meter_admits_exactly_what_the_filter_admits(data: st.DataObject) -> None:
    """W9: over any history, whatever was charged before."""
    rule = design(*data.draw(LIMITS))
    pot: Pot = filter_pot(rule)
    spent = [0] * len(rule.orders)
    for charge in data.draw(st.lists(charges(rule), max_size=4)):
        after = [min(used + amount, INFINITE) for used, amount in zip(spent, charge, strict=True)]
        assert (pot.meter.room(charge) > 0) == rule.admits(after)
        pot, spent = pot.moved(charge, spent=1, reserved=0), after
    assert pot.main == rule.main
