"""Room: a higher limit never reduces it, and the remaining budget is admitted.

Over random limits, deltas and histories.
"""

from dataclasses import dataclass, replace

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from app.errors import InvalidRequest
from app.inference.core.facts import Column, DeclaredFacts
from app.inference.core.plan import ModelSpec, PlanRequest
from app.jobs.planning import NoiseCache, Wish, make_charge, make_plan
from app.ledger import Charge
from app.ledger.account.opening import make_design_pot
from app.ledger.entries.admission import compose, decide, find_largest_gaussian, is_admissible
from app.ledger.entries.balance import (
    LIMIT_CHANGED,
    OPENED,
    RESERVED,
    SETTLED,
    VOIDED,
    Balance,
    LedgerEvent,
    Share,
    apply,
)
from app.ledger.entries.meter import compute_total_bounds, make_total_pot
from app.ledger.entries.numbers import pack
from app.privacy.accounting import ORDERS
from app.privacy.calibration import calibrate
from app.privacy.events import GaussianEvent, to_json
from tests.ledger.support import Bench, gaussian, sampled

GREATEST = 20.0
CALLER = "key_c"
MODEL = ModelSpec("logistic-regression", ("x", "z"), "y")
COLUMNS = (Column("x", "real", -1, 1), Column("z", "integer", 0, 9), Column("y", "binary"))
JOBS = (
    *(gaussian(noise) for noise in (0.8, 5.0, 40.0, 3_000.0)),
    *(sampled(*shape) for shape in ((1.1, 0.02, 300), (0.8, 0.002, 2_000), (2.0, 0.1, 100), (5.0, 0.5, 11))),
    Charge((*gaussian(30.0).events, *sampled(1.0, 0.01, 50).events)),
)

slots = st.integers(1, 7).map(lambda exponent: 10**exponent)
shares = st.floats(-6.0, 0.0).map(lambda exponent: 10.0**exponent)
limits = st.floats(0.05, GREATEST)
jobs = st.sampled_from(JOBS)
ends = st.sampled_from([(), (OPENED,), (OPENED, SETTLED), (VOIDED,)])


def fresh(epsilon: float, delta: float, cap: float | None = None) -> Balance | None:
    """A fresh balance; None if the filter would admit nothing."""
    try:
        pot = make_design_pot(epsilon, delta, GREATEST, "")
        share = Share(1, make_design_pot(cap, delta, GREATEST, "") if cap else None)
    except InvalidRequest:
        return None
    total = make_total_pot(epsilon, delta, ORDERS)
    return Balance("key_o", "people", "zero_out", {"kind": "row"}, total, (pot,), {"ds_a": share})


def spend(balance: Balance, charge: Charge, job_id: str, steps: tuple[str, ...]) -> Balance:
    """The balance after a job was reserved, if it fits, and went through ``steps``."""
    pinned = decide(balance, "ds_a", charge, CALLER).pinned
    if pinned is None:
        return balance
    body = {"events": [to_json(event) for event in charge.events], "charge": pinned.to_json()}
    for kind in (RESERVED, *steps):
        balance = apply(balance, LedgerEvent(1, kind, "ds_a", job_id, body))
    return balance


def relimit(balance: Balance, epsilon: float, delta: float) -> Balance:
    """The balance after a change of the limit. One above all tranches adds ``delta``, if there is such a filter."""
    tranche, together = None, balance.total.delta
    added = epsilon - balance.guaranteed_epsilon
    if added > 1e-9:
        try:
            tranche = make_design_pot(added, delta, GREATEST, "").to_json()
        except InvalidRequest:
            return balance
        together += delta
    elif epsilon < compose(balance):
        return balance
    body = {
        "epsilon": epsilon,
        "delta": together,
        "bounds": pack(compute_total_bounds(epsilon, together, ORDERS)),
        "tranche": tranche,
        "distance": "0",
    }
    return apply(balance, LedgerEvent(1, LIMIT_CHANGED, "ds_a", None, body))


def room(balance: Balance, charge: Charge) -> int:
    preview = decide(balance, "ds_a", charge).preview
    return preview.more_like_this + preview.affordable


@dataclass(frozen=True)
class Setting:
    """A declaration of an owner, and calls of analysts."""

    delta: float
    history: tuple[tuple[Charge, tuple[str, ...]], ...]

    def after(self, balance: Balance) -> Balance:
        for index, (charge, steps) in enumerate(self.history):
            balance = spend(balance, charge, f"job_{index}", steps)
        return balance


histories = st.lists(st.tuples(jobs, ends), max_size=4).map(tuple)
settings_of = st.builds(lambda slots, share, history: Setting(share / (10 * slots), history), slots, shares, histories)


@given(setting=settings_of, limit=limits, growth=st.floats(1e-6, 4.0), job=jobs)
@settings(deadline=None, max_examples=60)
def test_room_never_falls_from_one_fresh_limit_to_a_higher_one(
    setting: Setting, limit: float, growth: float, job: Charge
) -> None:
    """W15: for the same job without earlier charges. The remaining epsilon is compared at the same delta."""
    low, high = fresh(limit, setting.delta), fresh(min(limit * (1 + growth), GREATEST), setting.delta)
    assert low is None or high is not None
    if low is not None and high is not None:
        assert room(high, job) >= room(low, job)
        assert find_largest_gaussian(high, "ds_a") >= find_largest_gaussian(low, "ds_a")


@given(setting=settings_of, limit=limits, raised=limits, job=jobs)
@settings(deadline=None, max_examples=60)
def test_room_never_falls_when_a_used_limit_is_raised(
    setting: Setting, limit: float, raised: float, job: Charge
) -> None:
    """W15: after any history. The remaining budget is compared by its noise, because delta grows too."""
    start = fresh(limit, setting.delta)
    assume(start is not None and raised > limit)
    assert start is not None
    before = setting.after(start)
    after = relimit(before, raised, setting.delta)
    assert room(after, job) >= room(before, job)
    assert least_noise(after) <= least_noise(before) * (1 + 1e-6)


def least_noise(balance: Balance) -> float:
    remaining = find_largest_gaussian(balance, "ds_a")
    return calibrate(lambda noise: (GaussianEvent(noise),), remaining, balance.total.delta) if remaining else 1e6


@given(setting=settings_of, limit=limits, moves=st.lists(limits, min_size=1, max_size=4), job=jobs)
@settings(deadline=None, max_examples=60)
def test_raising_and_lowering_back_keeps_the_room(
    setting: Setting, limit: float, moves: list[float], job: Charge
) -> None:
    """W15: a limit that was raised and lowered back admits at least as much as before."""
    start = fresh(limit, setting.delta)
    assume(start is not None)
    assert start is not None
    moved = before = setting.after(start)
    for move in (*(move for move in moves if move > limit), limit):
        moved = relimit(moved, move, setting.delta)
    assert moved.total.epsilon == limit
    assert room(moved, job) >= room(before, job)


def test_room_at_the_greatest_limit_is_more_than_at_half_of_it(bench: Bench) -> None:
    """Accounts with the greatest limit, and raised from 10 to 20 and back."""
    large = gaussian(0.6)
    bench.open_account("ds_ten", population="ten", epsilon=10.0)
    bench.open_account("ds_twenty", population="twenty", epsilon=20.0)
    ten, twenty = bench.preview(large, "ds_ten"), bench.preview(large, "ds_twenty")
    assert twenty.affordable
    assert twenty.more_like_this > ten.more_like_this
    bench.change_limit(19.9, 1e-6, "ds_ten")
    bench.change_limit(10.0, None, "ds_ten")
    assert bench.preview(gaussian(1.0), "ds_ten").affordable
    assert bench.budget("ds_ten").remaining.epsilon > 9.0
    assert bench.verify() == ()


facts_of = st.builds(
    lambda slots, share: DeclaredFacts(COLUMNS, slots, {"kind": "row"}, "private", share / (10 * slots)), slots, shares
)


@given(
    facts=facts_of,
    limit=limits,
    cap=st.none() | limits,
    allocation=st.none() | limits,
    history=histories,
    method=st.sampled_from(["dp-psvi-surrogate", "dp-psvi", "dp-vi"]),
    purchases=st.integers(1, 3),
)
@settings(deadline=None, max_examples=50)
def test_a_quote_for_the_remaining_budget_is_affordable(
    facts: DeclaredFacts,
    limit: float,
    cap: float | None,
    allocation: float | None,
    history: tuple[tuple[Charge, tuple[str, ...]], ...],
    method: str,
    purchases: int,
) -> None:
    """API: by any private method on the full batch, also after the remaining budget was spent."""
    assert facts.delta is not None
    balance = fresh(limit, facts.delta, cap)
    assume(balance is not None)
    assert balance is not None
    if allocation is not None:
        balance = allocated(balance, allocation)
        assume(balance is not None)
        assert balance is not None
    balance = Setting(facts.delta, history).after(balance)
    for index in range(purchases):
        remaining = find_largest_gaussian(balance, "ds_a", CALLER)
        assert 0 <= remaining <= limit
        if remaining == 0:
            return
        charge = quoted(balance, facts, method, remaining)
        assert decide(balance, "ds_a", charge, CALLER).preview.affordable
        balance = spend(balance, charge, f"job_bought_{index}", (OPENED, SETTLED))


def allocated(balance: Balance, epsilon: float) -> Balance | None:
    share = balance.datasets["ds_a"]
    try:
        pot = make_design_pot(epsilon, balance.total.delta, GREATEST, "")
    except InvalidRequest:
        return None
    return replace(balance, datasets={"ds_a": replace(share, allocations={CALLER: pot})})


def quoted(balance: Balance, facts: DeclaredFacts, method: str, epsilon: float) -> Charge:
    """The service's price for a target, with the method's defaults on the whole table."""
    parameters = {} if method == "dp-psvi-surrogate" else {"sampling_rate": 1.0}
    wish = Wish(PlanRequest(method, 10, MODEL, parameters), epsilon)
    assert facts.delta is not None
    plan = make_plan(
        wish, facts, facts.delta, NoiseCache(), lambda charge: is_admissible(balance, "ds_a", charge, CALLER)
    )
    return make_charge(plan)


@pytest.mark.parametrize("epsilon", [0.05, 1.0, 20.0])
def test_nothing_remains_after_the_whole_budget_is_spent(epsilon: float) -> None:
    """Leftovers that no job could use are not offered."""
    balance = fresh(epsilon, 1e-6)
    assert balance is not None
    for index in range(40):
        remaining = find_largest_gaussian(balance, "ds_a")
        if remaining == 0:
            break
        noise = calibrate(lambda noise: (GaussianEvent(noise),), remaining, 1e-6)
        assert decide(balance, "ds_a", gaussian(noise)).preview.affordable
        balance = spend(balance, gaussian(noise), f"job_{index}", (OPENED, SETTLED))
    assert find_largest_gaussian(balance, "ds_a") == 0
