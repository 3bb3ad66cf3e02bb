"""Prices and previews: never below dp-accounting's, and the remaining budget is admitted."""

from dataclasses import replace

import pytest
import sqlalchemy as sa
from dp_accounting import NeighboringRelation, rdp
from hypothesis import given, settings
from hypothesis import strategies as st

from app.ledger import Charge
from app.ledger.account.opening import make_design_pot
from app.ledger.entries.admission import compose, decide, find_largest_gaussian
from app.ledger.entries.balance import RESERVED, Balance, LedgerEvent, Share, apply
from app.ledger.entries.meter import make_total_pot
from app.ledger.entries.numbers import pack, packed_once, unpack
from app.privacy.accounting import ORDERS
from app.privacy.calibration import calibrate
from app.privacy.events import GaussianEvent, flatten, to_json
from tests.ledger import naive
from tests.ledger.support import DELTA, Bench, costing, gaussian, sampled


def fresh(epsilon: float, cap: float | None = None) -> Balance:
    pot = make_design_pot(epsilon, DELTA, 100.0, "")
    share = Share(1_000, make_design_pot(cap, DELTA, 100.0, "") if cap else None)
    total = make_total_pot(epsilon, DELTA, ORDERS)
    return Balance("key_o", "people", "zero_out", {"kind": "row"}, total, (pot,), {"ds_a": share})


def charged(balance: Balance, noise_multiplier: float, job_id: str) -> Balance:
    """After one full-batch job, if it fits."""
    charge = gaussian(noise_multiplier)
    pinned = decide(balance, "ds_a", charge).pinned
    if pinned is None:
        return balance
    body = {"events": [to_json(event) for event in charge.events], "charge": pinned.to_json()}
    return apply(balance, LedgerEvent(1, RESERVED, "ds_a", job_id, body))


@settings(max_examples=60, deadline=None)
@given(
    limit=st.floats(0.05, 8.0),
    cap=st.none() | st.floats(0.05, 8.0),
    spent=st.lists(st.floats(0.1, 1.0), max_size=3),
)
def test_the_remaining_budget_is_admitted_and_little_more(limit: float, cap: float | None, spent: list[float]) -> None:
    balance = fresh(limit, cap)
    for index, part in enumerate(spent):
        target = max(part * limit, 0.01)  # no noise reaches much less
        noise = calibrate(lambda noise: (GaussianEvent(noise),), target, DELTA)
        balance = charged(balance, noise, f"job_{index}")
    remaining = find_largest_gaussian(balance, "ds_a")
    assert compose(balance) <= limit
    assert 0 <= remaining <= limit
    if remaining > 0.01:
        noise = calibrate(lambda noise: (GaussianEvent(noise),), remaining, DELTA)
        assert decide(balance, "ds_a", gaussian(noise)).pinned is not None
        assert decide(balance, "ds_a", gaussian(noise * 0.999)).pinned is None


def test_the_remaining_budget_of_a_caller_is_within_its_allocation() -> None:
    balance = fresh(4.0)
    share = balance.datasets["ds_a"]
    share = replace(share, allocations={"key_1": make_design_pot(0.5, DELTA, 100.0, "")})
    balance = replace(balance, datasets={"ds_a": share})
    assert find_largest_gaussian(balance, "ds_a", "key_1") <= 0.5 < find_largest_gaussian(balance, "ds_a", "key_2")


@pytest.mark.parametrize("charge", [gaussian(3.0), gaussian(40.0, 7), sampled(1.1, 0.02, 300), sampled(5.0, 0.5, 11)])
def test_a_price_is_never_below_dp_accountings(bench: Bench, charge: Charge) -> None:
    """W9: the same events cost at least as much as in the library."""
    preview = bench.preview(charge)
    accountant = rdp.RdpAccountant(neighboring_relation=NeighboringRelation.REPLACE_SPECIAL)
    for event, count in flatten(charge.events):
        accountant.compose(naive.library_event(event), count)
    assert preview.cost_epsilon >= accountant.get_epsilon(DELTA)
    assert preview.cost_epsilon == pytest.approx(naive.epsilon([charge], DELTA), rel=1e-6)


def test_the_amounts_that_an_entry_pins_are_the_librarys_rounded_up(bench: Bench) -> None:
    charge = sampled(3.0, 0.1, 20)
    bench.reserve("job_1", charge)
    with bench.database.read() as session:
        body = session.scalar(sa.text("SELECT CAST(body AS TEXT) FROM ledger_entries WHERE kind = 'reserved'"))
    assert isinstance(body, str)
    pinned = [int(amount) / 2**40 for amount in body.split('"amounts": "')[1].split('"')[0].split()]
    library = naive.divergences((charge,), ORDERS)
    assert all(here >= there for here, there in zip(pinned, library, strict=True))
    assert pinned == pytest.approx(library, rel=1e-6, abs=1e-10)


def test_identical_jobs_are_counted_as_they_are_admitted(bench: Bench) -> None:
    charge = costing(0.7)
    expected = bench.preview(charge)
    admitted = 0
    while bench.preview(charge).affordable:
        after = bench.reserve(f"job_{admitted}", charge)
        admitted += 1
        assert after.more_like_this == expected.more_like_this + 1 - admitted
    assert admitted == expected.more_like_this + 1 > 3


def test_a_job_for_the_whole_limit_needs_little_more_noise() -> None:
    for limit in (0.2, 0.4, 1.0, 2.0, 5.0):
        noise = calibrate(lambda noise: (GaussianEvent(noise),), limit, DELTA)
        assert decide(fresh(limit), "ds_a", gaussian(noise * 1.05)).pinned is not None


def test_a_preview_reads_and_changes_nothing(bench: Bench) -> None:
    before = bench.budget()
    preview = bench.preview(costing(0.5))
    assert preview.cost_epsilon == pytest.approx(0.5)
    assert preview.cost_delta == DELTA
    assert preview.epsilon_after == preview.cost_epsilon
    assert bench.budget() == before


@given(st.lists(st.integers(0, 2**80)).map(tuple))
def test_packed_integers_of_any_size_are_read_back(numbers: tuple[int, ...]) -> None:
    assert unpack(pack(numbers)) == numbers
    assert packed_once(numbers) == pack(numbers)
