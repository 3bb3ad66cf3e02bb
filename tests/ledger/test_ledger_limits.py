"""Limits: lower at once, higher by a tranche; the sum of tranches stays the guarantee."""

import math
import re
import uuid
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from app.errors import BudgetExceeded, InvalidRequest, StateConflict
from app.ledger import Charge, Guarantee
from app.privacy.filter import design
from tests.ledger.naive import epsilon
from tests.ledger.support import DELTA, Bench, costing


def guarantee(bench: Bench, dataset_id: str = "ds_a") -> Guarantee:
    with bench.database.read() as session:
        return bench.ledger.guarantee(session, dataset_id)


def test_a_lower_limit_only_stops_spending(bench: Bench) -> None:
    """W9: the limit of the whole account binds."""
    bench.run("job_1", costing(0.5))
    bench.change_limit(0.6)
    assert bench.budget().limit.epsilon == 0.6
    with pytest.raises(BudgetExceeded):
        bench.reserve("job_2", costing(0.5))
    stated = guarantee(bench)
    assert (stated.epsilon, stated.delta) == (2.0, DELTA)


def test_a_limit_never_falls_below_what_is_spent_and_reserved(bench: Bench) -> None:
    """W9: spent and reserved charges count."""
    bench.run("job_1", costing(0.4))
    bench.reserve("job_2", costing(0.4))
    budget = bench.budget()
    total = budget.spent.epsilon + budget.reserved.epsilon
    with pytest.raises(StateConflict) as refusal:
        bench.change_limit(total - 1e-6)
    assert bench.budget() == budget
    least = float(refusal.value.detail.partition("Use at least ")[2].removesuffix("."))
    assert total <= least < total + 1e-3
    bench.change_limit(total + 1e-6)
    after = bench.budget()
    assert after.remaining.epsilon < 0.01
    assert after.used_share > 0.9


def test_a_lower_limit_without_use_shows_no_use(bench: Bench) -> None:
    bench.change_limit(0.3)
    assert bench.budget().used_share == 0.0
    bench.reserve("job_1", costing(0.2))
    assert 0.2 < bench.budget().used_share < 1.0


def test_a_higher_limit_opens_a_tranche(bench: Bench) -> None:
    """W9: it may spend the added epsilon and delta only."""
    bench.run("job_1", costing(1.9))
    with pytest.raises(BudgetExceeded):
        bench.reserve("job_2", costing(0.9))
    bench.change_limit(3.0, 5e-7)
    budget = bench.budget()
    assert (budget.limit.epsilon, budget.limit.delta) == (3.0, 1.5e-6)
    bench.run("job_2", costing(0.9))
    stated = guarantee(bench)
    assert (stated.epsilon, stated.delta) == (3.0, 1.5e-6)
    first, second = (design(2.0, DELTA), design(1.0, 5e-7))
    assert [tranche["orders"] for tranche in stated.tranches] == [list(first.orders), list(second.orders)]
    assert [tranche["bounds"] for tranche in stated.tranches] == [list(first.bounds()), list(second.bounds())]
    assert bench.verify() == ()


def test_the_page_states_how_a_raised_limit_bounds_single_jobs(bench: Bench) -> None:
    """One job cannot use two tranches."""
    bench.open_account("ds_2", population="2", epsilon=2.0, delta=2 * DELTA)
    bench.open_account("ds_1", population="1", epsilon=1.0, delta=DELTA)
    largest = [bench.budget("ds_2").remaining.epsilon]
    bench.change_limit(1.0, None, "ds_2")
    bench.change_limit(2.0, None, "ds_2")
    bench.change_limit(2.0, DELTA, "ds_1")
    largest += [bench.budget(each).remaining.epsilon for each in ("ds_2", "ds_1")]
    page = Path(__file__).parents[2] / "docs" / "explanation" / "epsilon-and-delta.md"
    stated = re.findall(r"^\| declared at .* \| ([\d.]+) \|$", page.read_text("utf-8"), re.MULTILINE)
    assert stated == [f"{epsilon:.3f}" for epsilon in largest]


@pytest.mark.parametrize("delta", [1e-9, 1e-6, 1e-5])
@pytest.mark.parametrize("before", [2.0, 2.1 + 0.2, 7.123456])
def test_a_too_small_increase_is_refused_with_the_least_limit(bench: Bench, before: float, delta: float) -> None:
    if before != 2.0:
        bench.change_limit(before, DELTA)
    with pytest.raises(InvalidRequest, match="This increase is too small") as refusal:
        bench.change_limit(before + 1e-5, delta)
    enough = re.match(r"This increase is too small\. Use at least ([\d.]+): ", refusal.value.detail)
    assert enough is not None
    bench.change_limit(float(enough[1]), delta)
    assert before + 0.0009 < bench.budget().limit.epsilon < before + 0.002
    assert guarantee(bench).epsilon == pytest.approx(float(enough[1]), rel=1e-12)


def test_a_job_goes_to_the_first_tranche_that_has_room(bench: Bench) -> None:
    """W9: two tranches of (1, d) admit two jobs of almost 1, one in each."""
    bench.change_limit(1.0)
    bench.open_account("ds_x", population="others", epsilon=1.0)
    bench.change_limit(2.0, DELTA, "ds_x")
    small = bench.preview(costing(0.95), "ds_x")
    assert small.more_like_this >= 1
    bench.reserve("job_1", costing(0.95), "ds_x")
    assert bench.preview(costing(0.95), "ds_x").more_like_this == small.more_like_this - 1
    bench.reserve("job_2", costing(0.95), "ds_x")


@pytest.mark.parametrize(
    ("epsilon", "delta", "pointer"),
    [
        (3.0, None, "/delta"),
        (3.0, 0.0, "/delta"),
        (3.0, math.nan, "/delta"),
        (3.0, 1e-4, "/delta"),
        (25.0, DELTA, "/epsilon"),
        (math.inf, DELTA, "/epsilon"),
        (math.nan, None, "/epsilon"),
        (0.0, None, "/epsilon"),
        (1.0, 2e-6, "/delta"),
    ],
)
def test_an_invalid_limit_is_refused(bench: Bench, epsilon: float, delta: float | None, pointer: str) -> None:
    before = bench.budget()
    with pytest.raises(InvalidRequest) as refusal:
        bench.change_limit(epsilon, delta)
    assert [fault.pointer for fault in refusal.value.faults] == [pointer]
    assert bench.budget() == before


def test_a_limit_that_was_lowered_rises_again_without_a_tranche(bench: Bench) -> None:
    """W9: the tranches bound all releases, so a limit within their sum adds nothing to the guarantee."""
    before, stated = bench.budget(), guarantee(bench)
    for _ in range(30):
        bench.change_limit(0.5)
        bench.change_limit(2.0)
    bench.change_limit(1.0)
    bench.change_limit(2.0, DELTA)  # the delta belongs to a part that is not added
    assert replace(bench.budget(), version=1) == before
    assert replace(guarantee(bench), sequence=1) == stated
    assert bench.verify() == ()


def test_only_the_part_above_the_highest_limit_opens_a_tranche(bench: Bench) -> None:
    """W9: epsilon and delta of the guarantee grow by that part alone."""
    bench.change_limit(1.0)
    with pytest.raises(InvalidRequest):
        bench.change_limit(2.5)
    bench.change_limit(2.5, 5e-7)
    stated = guarantee(bench)
    assert (stated.epsilon, stated.delta) == (2.5, 1.5e-6)
    assert [tranche["epsilon"] for tranche in stated.tranches] == [2.0, 0.5]
    bench.change_limit(20.0, DELTA)
    assert guarantee(bench).epsilon == 20.0


@pytest.mark.sqlite
@pytest.mark.slow
@given(
    st.lists(
        st.one_of(
            st.tuples(st.just("limit"), st.sampled_from([0.1, 0.3, 0.7, 1.0, 1.1, 1.5, 2.0, 2.7, 3.3])),
            st.tuples(st.just("spend"), st.sampled_from([0.1, 0.4, 0.9])),
        ),
        max_size=12,
    )
)
@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_the_guarantee_is_the_highest_limit_in_every_sequence(bench: Bench, moves: list[tuple[str, float]]) -> None:
    """W9: no sequence admits more than the highest limit, and each former limit can be set again."""
    dataset = f"ds_{uuid.uuid4().hex}"
    bench.open_account(dataset, population=dataset, epsilon=1.0)
    highest, delta, spent = 1.0, DELTA, list[Charge]()
    for place, (move, amount) in enumerate(moves):
        with suppress(BudgetExceeded, StateConflict):
            if move == "spend":
                bench.run(f"job_{dataset}_{place}", costing(amount), dataset)
                spent.append(costing(amount))
            else:
                added = DELTA / 10 if amount > highest else None
                bench.change_limit(amount, added, dataset)
                highest, delta = max(highest, amount), delta + (added or 0.0)
        stated = guarantee(bench, dataset)
        assert stated.epsilon == pytest.approx(highest, rel=1e-12)
        assert stated.delta == pytest.approx(delta, rel=1e-12)
        assert epsilon(spent, delta) <= bench.budget(dataset).limit.epsilon * (1 + 1e-9)
    bench.change_limit(highest, None, dataset)
    assert bench.budget(dataset).limit.epsilon == highest


def test_a_limit_that_stays_is_no_change(bench: Bench) -> None:
    bench.change_limit(2.0)
    bench.change_limit(2.0, DELTA)
    assert bench.budget().version == 1


def test_a_cap_changes_within_the_account(bench: Bench) -> None:
    bench.open_account("ds_b", epsilon=0.5)
    bench.run("job_1", costing(0.45), "ds_b")
    with pytest.raises(StateConflict):
        bench.change_limit(0.3, None, "ds_b")
    with pytest.raises(InvalidRequest):
        bench.change_limit(1.0, 5e-7, "ds_b")
    bench.change_limit(1.0, None, "ds_b")
    bench.run("job_2", costing(0.45), "ds_b")
    assert bench.budget("ds_b").limit.epsilon == 1.0
    assert bench.budget("ds_a").limit.epsilon == 2.0
    assert guarantee(bench, "ds_b") == guarantee(bench, "ds_a")
    bench.change_limit(5.0, None, "ds_b")
    assert bench.budget("ds_b").limit.epsilon == 2.0
    assert bench.verify() == ()


def test_a_cap_without_use_gets_new_orders(bench: Bench) -> None:
    bench.open_account("ds_b", epsilon=0.05)
    bench.change_limit(1.5, None, "ds_b")
    bench.reserve("job_1", costing(1.45), "ds_b")
    assert bench.verify() == ()
