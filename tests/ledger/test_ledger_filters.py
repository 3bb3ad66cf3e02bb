"""The ledger's meters decide like the filter that tests/properties verifies."""

from random import Random

from hypothesis import given
from hypothesis import strategies as st

from app.ledger.entries.meter import Pot, filter_pot
from app.privacy.accounting import INFINITE
from app.privacy.filter import Filter, design

LIMITS = st.sampled_from([(0.1, 1e-6), (0.4, 1e-8), (1.0, 1e-6), (5.0, 1e-5), (20.0, 1e-9)])


def charge(rule: Filter, chance: Random) -> tuple[int, ...]:
    """Amounts at the bounds and one unit from them, tiny and infinite; in half of the charges one order may fit.

    Hypothesis draws the seed only: hundreds of amounts a charge would take it a second each.
    """
    if chance.random() < 0.5:
        return tuple(
            chance.choice([chance.randint(1, 2 * bound), 1, bound, bound + 1, max(1, bound - 1), INFINITE])
            for bound in rule.bounds()
        )
    amounts = [chance.choice([bound + 1, 2 * bound + 1, INFINITE]) for bound in rule.bounds()]
    place = chance.randrange(len(amounts))
    bound = rule.bounds()[place]
    amounts[place] = chance.choice([1, max(1, bound // 2), max(1, bound - 1), bound, bound + 1])
    return tuple(amounts)


def decisions(rule: Filter, chance: Random) -> list[bool]:
    """Compare the meter's decisions on a history of charges with the filter's."""
    pot: Pot = filter_pot(rule)
    spent, found = [0] * len(rule.orders), list[bool]()
    for _ in range(chance.randint(1, 4)):
        each = charge(rule, chance)
        after = [min(used + amount, INFINITE) for used, amount in zip(spent, each, strict=True)]
        found.append(rule.admits(after))
        assert (pot.meter.room(each) > 0) == found[-1]
        pot, spent = pot.move(each, spent=1, reserved=0), after
    assert pot.main == rule.main
    return found


@given(LIMITS, st.integers(0, 2**32))
def test_a_meter_admits_exactly_what_the_filter_admits(limit: tuple[float, float], seed: int) -> None:
    """W9: over any history of charges."""
    decisions(design(*limit), Random(seed))


def test_histories_contain_both_admissions_and_refusals() -> None:
    """Otherwise the test above would only cover one side."""
    rule = design(1.0, 1e-6)
    found = [decision for seed in range(200) for decision in decisions(rule, Random(seed))]
    assert 0.3 < sum(found) / len(found) < 0.7
