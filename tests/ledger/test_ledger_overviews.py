"""Overviews of accounts, and lists of entries that match a filter."""

from datetime import UTC, datetime, timedelta

import pytest

from app.ledger import Cause, EntryFilter, Overview, overviews
from app.privacy.accounting import INFINITE, ORDERS, compose_renyi
from app.privacy.events import GaussianEvent, PoissonSampledEvent, PrivacyEvent
from tests.ledger.support import Bench, costing
from tests.ledger.test_ledger_allocations import reserve


def _read(bench: Bench, dataset_id: str = "ds_a", caller_id: str | None = None) -> Overview:
    with bench.database.read() as session:
        return bench.ledger.overviews(session, [dataset_id, "ds_unknown"], caller_id)[dataset_id]


def _list(bench: Bench, **criteria: object) -> list[str]:
    with bench.database.read() as session:
        matching = EntryFilter(**criteria)  # type: ignore[arg-type]
        return [entry.kind for entry in bench.ledger.entries(session, "ds_a", limit=9, before=None, criteria=matching)]


def _later(monkeypatch: pytest.MonkeyPatch, **span: float) -> None:
    monkeypatch.setattr(overviews, "now", lambda: datetime.now(UTC) + timedelta(**span))


def test_account_without_jobs_has_no_pace_and_no_last_job(bench: Bench) -> None:
    found = _read(bench)
    assert (found.more_like_last, found.lasts, found.frozen_at) == (None, None, None)


def test_room_for_jobs_like_the_last_is_the_number_that_fits(bench: Bench) -> None:
    bench.run("job_1", costing(0.5))
    room = _read(bench).more_like_last
    assert room is not None
    for number in range(room):
        bench.run(f"more_{number}", costing(0.5))
    assert _read(bench).more_like_last == 0
    assert not bench.preview(costing(0.5)).affordable


@pytest.mark.parametrize("delta", [1e-6, 1e-8, 1e-12])
def test_a_raised_limit_adds_room_at_other_orders(bench: Bench, delta: float) -> None:
    bench.run("job_1", costing(0.5))
    before = _read(bench).more_like_last
    bench.change_limit(4.0, delta)
    found, exact = _read(bench).more_like_last, bench.preview(costing(0.5)).more_like_this + 1
    assert before is not None
    assert found is not None
    assert max(before, 0.97 * exact) < found <= exact


@pytest.mark.parametrize("event", [GaussianEvent(5.0), PoissonSampledEvent(0.05, GaussianEvent(1.5))])
def test_an_amount_between_orders_is_bounded_from_above(event: PrivacyEvent) -> None:
    amounts = dict(zip(ORDERS, compose_renyi([event]), strict=True))
    for order in (2.5, 3.25, 7.75, 64.0, 96.0, 384.0):
        (exact,) = compose_renyi([event], [order])
        assert exact <= overviews.bound_amount(amounts, order) <= 1.35 * exact
    assert overviews.bound_amount(amounts, 17.0) == amounts[17.0]
    assert overviews.bound_amount(amounts, 2048.0) == overviews.bound_amount(amounts, 1.5) == INFINITE


def test_cap_and_allocation_bound_the_room(bench: Bench) -> None:
    bench.open_account("ds_b", epsilon=0.7)
    bench.run("job_1", costing(0.5), "ds_b")
    assert _read(bench, "ds_b").more_like_last == 0
    bench.write(lambda tx: bench.ledger.allocate(tx, "ds_a", {"key_1": 0.6}))
    reserve(bench, "job_2", costing(0.5), "key_1")
    assert _read(bench, caller_id="key_1").more_like_last == 0
    assert (_read(bench, caller_id="key_2").more_like_last or 0) > 0


def test_frozen_account_has_no_room(bench: Bench) -> None:
    bench.run("job_1", costing(0.5))
    bench.write(lambda tx: bench.ledger.freeze(tx, "ds_a", Cause.RUN))
    found = _read(bench)
    assert found.more_like_last == 0
    assert found.frozen_at is not None


def test_pace_needs_two_jobs_and_an_hour(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    bench.run("job_1", costing(0.5))
    _later(monkeypatch, days=10)
    assert _read(bench).lasts is None
    bench.run("job_2", costing(0.5))
    found = _read(bench)
    assert found.lasts is not None
    expected = timedelta(days=10) * ((1 - found.budget.used_share) / found.budget.used_share)
    assert abs(found.lasts - expected) < timedelta(hours=1)
    _later(monkeypatch, minutes=5)
    assert _read(bench).lasts is None


def test_entries_match_kind_and_time(bench: Bench) -> None:
    bench.run("job_1", costing(0.5))
    future = datetime.now(UTC) + timedelta(days=1)
    assert _list(bench) == ["settled", "opened", "reserved", "account_opened"]
    assert _list(bench, kind="opened") == ["opened"]
    assert _list(bench, since=future) == []
    assert len(_list(bench, until=future)) == 4
