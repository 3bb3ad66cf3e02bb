"""The first page: budgets at a glance."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

import pytest
import sqlalchemy as sa

from app.db import Database, now
from app.inference.core import plan_json
from app.jobs.planning import make_charge
from app.ledger import Cause, overviews
from tests.dashboard.conftest import Open
from tests.dashboard.html_checks import find_faults, remove_scripts
from tests.factories import rows
from tests.factories.worker import House

LARGEST_PAGE = 60_000
HOSTILE = "<script>alert('x')</script> & \"quotes\""


@contextmanager
def counted(database: Database) -> Iterator[list[str]]:
    """Collect the statements that run in the block."""
    statements: list[str] = []

    def note(_: Any, __: Any, statement: str, *___: Any) -> None:
        statements.append(statement)

    sa.event.listen(database.engine, "before_cursor_execute", note)
    yield statements
    sa.event.remove(database.engine, "before_cursor_execute", note)


def test_a_row_states_spent_reserved_limit_and_the_room(house: House, browse: Open, owner: rows.Key) -> None:
    dataset = house.ready_dataset(owner, name="census", population="adults")
    house.run(house.job(dataset, owner))
    house.job(dataset, owner)
    with house.database.read() as session:
        budget = house.ledger.budget(session, dataset)
    page = browse(owner).get("/dashboard").text
    for words in (
        "census",
        "adults",
        f"ε {budget.spent.epsilon:.3f}".rstrip("0"),
        "ε 2<",
        "more jobs</strong> like the last",
    ):
        assert words in page
    assert find_faults(page) == []
    assert 'role="img" aria-label="Of a limit of 2: ' in page
    assert f"/dashboard/populations/{dataset}" in page


def test_the_room_is_the_ledgers_own(house: House, owner: rows.Key) -> None:
    """The overview's room equals a quote's ``more_like_this``, although it prices nothing."""
    dataset = house.ready_dataset(owner)
    house.run(job := house.job(dataset, owner))
    with house.database.read() as session:
        found = house.ledger.overviews(session, [dataset])[dataset]
        events = make_charge(plan_json.from_json(house.read(job).plan))
        preview = house.ledger.preview(session, dataset, events)
        assert found.more_like_last == preview.more_like_this + 1
        assert found.budget == house.ledger.budget(session, dataset)


def test_an_empty_account_has_no_pace_and_no_last_job(house: House, owner: rows.Key) -> None:
    dataset = house.ready_dataset(owner)
    with house.database.read() as session:
        found = house.ledger.overviews(session, [dataset])[dataset]
    assert (found.more_like_last, found.lasts, found.frozen_at) == (None, None, None)


def test_the_pace_is_proportional_to_time(house: House, owner: rows.Key, monkeypatch: pytest.MonkeyPatch) -> None:
    dataset = house.ready_dataset(owner)
    for _ in range(2):
        house.job(dataset, owner)
    monkeypatch.setattr(overviews, "now", lambda: now() + timedelta(days=10))
    with house.database.read() as session:
        found = house.ledger.overviews(session, [dataset])[dataset]
    share = found.budget.used_share
    assert found.lasts is not None
    assert found.lasts / timedelta(days=10) == pytest.approx((1 - share) / share, rel=1e-3)


def test_a_frozen_account_has_no_room(house: House, browse: Open, owner: rows.Key) -> None:
    dataset = house.ready_dataset(owner)
    house.job(dataset, owner)
    with house.database.write() as tx:
        house.ledger.freeze(tx, dataset, Cause.RUN)
    page = browse(owner).get("/dashboard").text
    assert "Frozen" in page
    assert "No job runs until the freeze ends." in page


def test_names_are_escaped(house: House, browse: Open, owner: rows.Key) -> None:
    house.ready_dataset(owner, name=HOSTILE, population=f"p{HOSTILE}")
    page = browse(owner).get("/dashboard").text
    assert "<script" not in remove_scripts(page)[0]
    assert "&lt;script&gt;" in page


def test_the_page_has_a_fixed_number_of_queries_and_a_bounded_size(
    house: House, browse: Open, owner: rows.Key, auditor: rows.Key
) -> None:
    browser = browse(auditor)
    first = house.ready_dataset(owner)
    house.job(first, owner)
    with counted(house.database) as few:
        browser.get("/dashboard")
    for number in range(30):
        house.ready_dataset(owner, name=f"{number} {'n' * 190}", population=f"{number} {'p' * 190}")
    with counted(house.database) as many:
        page = browser.get("/dashboard")
    assert len(many) == len(few)
    assert len(page.content) <= LARGEST_PAGE


def test_older_datasets_are_on_the_next_page(house: House, browse: Open, owner: rows.Key) -> None:
    names = [f"dataset-{number:02}" for number in range(27)]
    for name in names:
        house.ready_dataset(owner, name=name)
    browser = browse(owner)
    first = browser.get("/dashboard").text
    following = first.partition('rel="next"')[0].rpartition('href="')[2].partition('"')[0].replace("&amp;", "&")
    second = browser.get(following).text
    shown = [name for page in (first, second) for name in reversed(names) if f">{name}<" in page]
    assert shown == list(reversed(names))
    assert 'rel="next"' not in second


@pytest.mark.parametrize("role", ["owner", "analyst", "auditor", "admin"])
def test_a_visitor_without_datasets_learns_the_next_step(house: House, browse: Open, role: str) -> None:
    with house.database.write() as tx:
        key = rows.api_key(tx, role)
    page = browse(key).get("/dashboard").text
    assert {"owner": "Declare a table", "analyst": key.id}.get(role, "No dataset was declared yet") in page


def test_an_analyst_sees_shared_datasets_only(house: House, browse: Open, owner: rows.Key, analyst: rows.Key) -> None:
    house.ready_dataset(owner, name="shared-one", shared_with=(analyst.id,))
    house.ready_dataset(owner, name="hidden-one")
    page = browse(analyst).get("/dashboard").text
    assert "shared-one" in page
    assert "hidden-one" not in page


def test_public_data_has_no_budget(house: House, browse: Open, owner: rows.Key) -> None:
    house.ready_dataset(owner, sensitivity="public")
    assert "Public data" in browse(owner).get("/dashboard").text
