"""The page of one account: figures, risk, history and verification."""

import csv
import io
import math
from datetime import datetime, timedelta

import pytest
import sqlalchemy as sa

from app.budgets import service
from app.budgets.risks import bound_limit, measure_spent
from app.dashboard.charts.steps import Refusals, Span, Step, draw_steps
from app.db import now
from app.ledger import EntryFilter, Guarantee
from app.privacy.risk import bound_true_positives
from tests.dashboard.browser import code_of
from tests.dashboard.conftest import Open
from tests.dashboard.html_checks import find_faults
from tests.factories import rows
from tests.factories.tampering import drop_triggers, table
from tests.factories.worker import House

HOSTILE = "<script>alert('x')</script>"
NOISE = {"noise_multiplier": 2.0, "sampling_rate": 1.0, "iterations": 1}


@pytest.fixture
def dataset(house: House, owner: rows.Key, analyst: rows.Key) -> str:
    dataset = house.ready_dataset(owner, name="census", shared_with=(analyst.id,))
    house.run(house.job(dataset, owner))
    house.job(dataset, analyst)
    return dataset


def test_the_history_has_a_row_for_each_entry(
    house: House, browse: Open, owner: rows.Key, analyst: rows.Key, dataset: str
) -> None:
    page = browse(owner).get(f"/dashboard/populations/{dataset}").text
    with house.database.read() as session:
        entries = house.ledger.entries(session, dataset, limit=100, before=None)
    assert find_faults(page) == []
    assert page.count('<th scope="row" class="number" data-label="No.">') == len(entries) == 5
    assert page.count('class="chart-point"') == len(entries)
    assert page.count('class="chart-reserved"') == 2
    for words in (
        "Account opened",
        "Job settled",
        "logistic regression of income_gt_50k on age, hours, sex",
        ">a key</td>",
        ">you</td>",
    ):
        assert words in page
    assert f"/dashboard/releases/{house.read(entries[1].job_id or '').release_id}" in page


def test_a_fresh_account_has_less_left_than_its_limit(house: House, browse: Open, owner: rows.Key) -> None:
    dataset = house.ready_dataset(owner)
    with house.database.read() as session:
        budget = house.ledger.budget(session, dataset)
    assert budget.remaining.epsilon < budget.limit.epsilon
    page = browse(owner).get(f"/dashboard/populations/{dataset}").text
    assert "the largest job left may cost more or less than limit minus spent" in page


def test_an_analyst_sees_figures_without_the_ledger(
    browse: Open, analyst: rows.Key, owner: rows.Key, dataset: str
) -> None:
    browser = browse(analyst)
    page = browser.get(f"/dashboard/populations/{dataset}").text
    assert "one row risks" in page
    assert "<table>" not in page
    assert "Account opened" not in page
    for place in ("entries.csv", "verification"):
        assert browser.get(f"/dashboard/populations/{dataset}/{place}").status_code == 403


def test_spent_risk_is_exact_for_full_batches(house: House, owner: rows.Key) -> None:
    dataset = house.ready_dataset(owner)
    with house.database.read() as session:
        assert measure_spent(house.ledger.exposure(session, dataset), 0.0, 1e-6) is None
    house.run(house.job(dataset, owner, privacy=NOISE | {"noise_multiplier": 10.0}))
    with house.database.read() as session:
        budget = house.ledger.budget(session, dataset)
        risk = measure_spent(house.ledger.exposure(session, dataset), budget.spent.epsilon, 1e-6)
    assert risk is not None
    assert risk.exact
    assert risk.odds == pytest.approx(math.exp(budget.spent.epsilon))
    assert 0.01 < risk.true_positives < bound_true_positives(0.01, budget.spent.epsilon, 1e-6)


def test_the_limit_has_the_bound_of_epsilon_and_delta() -> None:
    risk = bound_limit(Guarantee(2.0, 1e-6, (), "rdp", 1))
    assert (risk.exact, risk.true_positives) == (False, bound_true_positives(0.01, 2.0, 1e-6))


def test_the_page_states_odds_and_true_positives(browse: Open, owner: rows.Key, dataset: str) -> None:
    page = browse(owner).get(f"/dashboard/populations/{dataset}").text
    assert "could reach at most <strong>7.4 : 1</strong>" in page
    assert "A test with 1 % false positives finds at most <strong>7.39 %</strong>" in page


def test_filters_restrict_table_and_download_alike(browse: Open, owner: rows.Key, dataset: str) -> None:
    browser, address = browse(owner), f"/dashboard/populations/{dataset}"
    wanted = {"kind": "reserved", "since": f"{now():%Y-%m-%d}", "until": ""}
    page = browser.get(address, params=wanted).text
    assert page.count('<th scope="row" class="number" data-label="No.">') == 2
    assert 'value="reserved" selected' in page
    found = list(csv.DictReader(io.StringIO(browser.get(f"{address}/entries.csv", params=wanted).text)))
    assert [row["kind"] for row in found] == ["reserved", "reserved"]
    tomorrow = {"since": f"{now() + timedelta(days=2):%Y-%m-%d}"}
    assert "No entry matches" in browser.get(address, params=tomorrow).text


@pytest.mark.parametrize("query", [{"kind": "other"}, {"since": "yesterday"}, {"until": "2029-13-01"}, {"cursor": "x"}])
def test_wrong_filters_are_refused(browse: Open, owner: rows.Key, dataset: str, query: dict[str, str]) -> None:
    assert browse(owner).get(f"/dashboard/populations/{dataset}", params=query).status_code == 422


def test_the_download_has_every_entry_and_no_formula(house: House, browse: Open, owner: rows.Key, dataset: str) -> None:
    answer = browse(owner).get(f"/dashboard/populations/{dataset}/entries.csv")
    assert answer.headers["content-type"] == "text/csv; charset=utf-8"
    assert answer.headers["content-disposition"] == f'attachment; filename="ledger-{dataset}.csv"'
    found = list(csv.DictReader(io.StringIO(answer.text)))
    assert [int(row["sequence"]) for row in found] == [5, 4, 3, 2, 1]
    assert not any(cell.startswith(("=", "+", "-", "@")) for row in found for cell in row.values())


def test_refusals_are_marked_with_time_and_submitter(
    house: House, browse: Open, owner: rows.Key, analyst: rows.Key, auditor: rows.Key, dataset: str
) -> None:
    """Owner and auditor see them. An analyst sees their number only."""
    browser = browse(auditor)
    body = {
        "dataset_id": dataset,
        "size": 6,
        "method": "dp-psvi",
        "model": {"family": "logistic-regression", "features": ["age"], "target": "income_gt_50k"},
        "privacy": NOISE | {"noise_multiplier": 0.2},
    }
    for key in (owner, analyst):
        assert browser.post("/v1/jobs", json=body, headers=key.headers).status_code == 409
    browser.get("/v1/audit-log", headers=auditor.headers)  # writes the counted refusals
    address = f"/dashboard/populations/{dataset}"
    for key, names in ((auditor, ("a key", "a key")), (owner, ("a key", "you"))):
        page = browse(key).get(address).text
        assert find_faults(page) == []
        assert 'class="chart-refusal"' in page
        assert "2 jobs that the budget did not cover" in page
        assert f'href="/v1/datasets/{dataset}/refusals"' in page
        for name in names:
            cells = f'<td data-label="By">{name}</td><td data-label="Not covered by">the account&#39;s limit</td>'
            assert f'{cells}<td class="number" data-label="Jobs">1</td>' in page
    assert "2 jobs that the budget" not in browse(owner).get(address, params={"until": "2020-01-01"}).text
    page = browse(analyst).get(address).text
    assert "<dd>2<span" in page
    for words in ('class="chart-refusal"', "Refused jobs", "/refusals"):
        assert words not in page


def test_the_verification_finds_an_altered_entry(house: House, browse: Open, owner: rows.Key, dataset: str) -> None:
    """W11: committed entries cannot be altered without detection."""
    browser = browse(owner)
    assert "The chain verifies" in browser.get(f"/dashboard/populations/{dataset}/verification").text
    with house.database.write() as tx:
        drop_triggers(tx)
        tx.execute(sa.update(table("ledger_entries")).where(sa.text("sequence = 3")).values(epsilon_after=0.001))
    assert "The chain does not verify" in browser.get(f"/dashboard/populations/{dataset}/verification").text


def test_one_chain_is_verified_at_a_time(browse: Open, owner: rows.Key, dataset: str) -> None:
    browser, address = browse(owner), f"/dashboard/populations/{dataset}/verification"
    with service.VERIFYING:
        answer = browser.get(address)
    assert (answer.status_code, code_of(answer)) == (429, "rate_limited")
    assert int(answer.headers["retry-after"]) > 0
    assert browser.get(address).status_code == 200


def test_public_data_has_no_population(house: House, browse: Open, owner: rows.Key) -> None:
    dataset = house.ready_dataset(owner, sensitivity="public")
    assert browse(owner).get(f"/dashboard/populations/{dataset}").status_code == 409


def test_filters_of_the_ledger_exclude_their_end(house: House, owner: rows.Key, dataset: str) -> None:
    with house.database.read() as session:
        entries = house.ledger.entries(session, dataset, limit=9, before=None)
        middle = entries[2].at
        criteria = EntryFilter(since=entries[-1].at, until=middle)
        found = house.ledger.entries(session, dataset, limit=9, before=None, criteria=criteria)
    assert [entry.sequence for entry in found] == [entry.sequence for entry in entries if entry.at < middle]


def test_a_chart_escapes_titles_and_stays_in_its_frame() -> None:
    start = datetime.fromisoformat("2029-01-01T00:00:00+00:00")
    end = start + timedelta(days=10)
    steps = [Step(start, 0.0, HOSTILE), Step(start + timedelta(days=2), 0.5, "second")]
    spans = [Span(start + timedelta(days=1), end, 0.0, 0.5)]
    chart = draw_steps(steps, spans, [Refusals(start + timedelta(days=3), 2)], 1.0, end)
    assert "<script" not in chart
    assert "2 refused jobs" in chart
    assert "limit 1<" in chart
    assert "style=" not in chart


def test_a_chart_of_one_moment_can_be_drawn() -> None:
    at = now()
    assert "chart-line" in draw_steps([Step(at, 0.0, "opened")], [], [], 0.0, at)
