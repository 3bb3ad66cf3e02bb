"""What-if questions: the page shows the consequence first, and the change then has it."""

import re
from typing import Any

import httpx
import pytest
import sqlalchemy as sa

from app.dashboard.wording import format_number
from app.ledger import Cause
from tests.dashboard.appearance import check_appearance
from tests.dashboard.conftest import Open, Visit
from tests.dashboard.html_checks import find_faults
from tests.factories import rows
from tests.factories.tampering import table
from tests.factories.worker import House


@pytest.fixture
def dataset(house: House, owner: rows.Key, analyst: rows.Key) -> str:
    dataset = house.ready_dataset(owner, name="census", shared_with=(analyst.id,))
    house.run(house.job(dataset, owner))
    return dataset


def _ask(browser: httpx.Client, dataset: str, kind: str, **typed: str) -> httpx.Response:
    return browser.post(f"/dashboard/populations/{dataset}/what-if/{kind}", data=typed)


def _confirm(browser: httpx.Client, dataset: str, kind: str, page: str, **changes: str) -> httpx.Response:
    """Send the form that confirms the change on a page."""
    form = page.partition(f'action="/dashboard/populations/{dataset}/{kind}"')[2].partition("</form>")[0]
    fields = dict(re.findall(r'<input type="hidden" name="([a-z_]+)" value="([^"]*)">', form))
    return browser.post(f"/dashboard/populations/{dataset}/{kind}", data=fields | changes)


def _read_rows(page: str) -> dict[str, tuple[str, str]]:
    """Read the table of the consequence."""
    found = re.findall(r'<th scope="row">(.*?)</th><td class="number">(.*?)</td><td class="number">(.*?)</td>', page)
    return {name: (now, re.sub("</?strong>", "", then)) for name, now, then in found}


def _dump(house: House) -> dict[str, Any]:
    """Read all rows of the ledger and the audit log, and the dataset's shares."""
    names = [name for name in table("ledger_entries").metadata.tables if name.startswith("ledger_")]
    with house.database.read() as session:
        return {name: session.execute(sa.select(table(name))).all() for name in names}


def _budget(house: House, dataset: str) -> Any:
    with house.database.read() as session:
        return house.ledger.budget(session, dataset)


QUESTIONS = {
    "job": {"job_epsilon": "0.5"},
    "lower": {"limit_epsilon": "1"},
    "higher": {"limit_epsilon": "3", "limit_delta": "1e-7"},
    "allocation": {"allocation_epsilon": "0.7"},
}


@pytest.mark.parametrize("name", QUESTIONS)
def test_a_question_changes_nothing(
    house: House, browse: Open, owner: rows.Key, analyst: rows.Key, dataset: str, name: str
) -> None:
    """W9: a preview reserves and spends nothing."""
    browser, before = browse(owner), _dump(house)
    kind = {"lower": "limit", "higher": "limit"}.get(name, name)
    answer = _ask(browser, dataset, kind, allocation_key=analyst.id, **QUESTIONS[name])
    assert answer.status_code == 200, answer.text
    assert find_faults(answer.text) == []
    assert 'role="status"' in answer.text
    assert _dump(house) == before
    with house.database.read() as session:
        assert house.ledger.verify_account(session, dataset)
    house.run(house.job(dataset, owner))  # the account can still be charged


def test_a_dry_run_is_undone_and_runs_its_hooks(house: House) -> None:
    ran = list[str]()
    with house.database.dry_run() as tx:
        tx.after_commit(lambda: ran.append("commit"))
        tx.after_rollback(lambda _: ran.append("rollback"))
        rows.api_key(tx, "owner")
    assert ran == ["rollback"]
    with house.database.read() as session:
        assert session.scalar(sa.select(sa.func.count()).select_from(table("api_keys"))) == 0


def test_the_consequence_of_a_limit_is_what_then_happens(
    house: House, browse: Open, owner: rows.Key, dataset: str
) -> None:
    browser = browse(owner)
    for typed in ({"limit_epsilon": "3", "limit_delta": "1e-7"}, {"limit_epsilon": "1.25"}):
        page = _ask(browser, dataset, "limit", **typed).text
        shown = _read_rows(page)
        answer = _confirm(browser, dataset, "limit", page)
        assert (answer.status_code, answer.headers["location"]) == (
            303,
            f"/dashboard/populations/{dataset}?changed=limit",
        )
        budget = _budget(house, dataset)
        assert shown["Limit on ε"][1] == f"{budget.limit.epsilon:g}"
        assert shown["Largest job left, ε"][1] == format_number(budget.remaining.epsilon)
        later = _read_rows(_ask(browser, dataset, "limit", **typed | {"limit_delta": ""}).text)
        assert {name: now for name, (now, _) in later.items()} == {name: then for name, (_, then) in shown.items()}
    assert "The limit is changed." in browser.get(answer.headers["location"]).text


def test_a_higher_limit_has_room_for_more_jobs(browse: Open, owner: rows.Key, dataset: str) -> None:
    """The room of the added tranche adds to that of the first."""
    shown = _read_rows(_ask(browse(owner), dataset, "limit", limit_epsilon="4", limit_delta="1e-6").text)
    now, then = (int(each.partition(" ")[0].replace(",", "")) for each in shown["More jobs like the last one"])
    assert 0 < now < then


def test_a_higher_limit_is_a_warning_with_its_risk(browse: Open, owner: rows.Key, dataset: str) -> None:
    page = _ask(browse(owner), dataset, "limit", limit_epsilon="3", limit_delta="1e-7").text
    assert "A higher limit weakens the guarantee" in page
    odds = _read_rows(page)["Odds that an attacker reaches from even ones if all is spent, up to δ"]
    assert odds == ("7.4 : 1", "21 : 1")
    assert 'class="danger">Change the limit' in page


def test_a_smaller_number_for_the_same_job_is_explained_before_the_change(
    house: House, browse: Open, owner: rows.Key, dataset: str
) -> None:
    """A raise adds delta, so the same noise has a smaller epsilon."""
    before = _budget(house, dataset).remaining.epsilon
    browser = browse(owner)
    page = _ask(browser, dataset, "limit", limit_epsilon="2.1", limit_delta="1e-6").text
    _confirm(browser, dataset, "limit", page)
    after = _budget(house, dataset).remaining.epsilon
    assert after < before
    falls = f"falls from {format_number(before, 4)} to {format_number(after, 4)}, but the job is not smaller"
    assert falls in page
    assert "is not smaller" not in _ask(browser, dataset, "limit", limit_epsilon="8", limit_delta="1e-6").text


def test_a_limit_that_was_in_force_returns_without_delta(
    house: House, browse: Open, owner: rows.Key, dataset: str
) -> None:
    """W9: neither the guarantee nor its delta grows, and the page states it."""
    browser, before = browse(owner), _budget(house, dataset)
    _confirm(browser, dataset, "limit", _ask(browser, dataset, "limit", limit_epsilon="1").text)
    page = _ask(browser, dataset, "limit", limit_epsilon="2").text
    assert "so the guarantee and its δ stay as they are" in page
    assert "weakens the guarantee</h2>" not in page
    assert find_faults(page) == []
    _confirm(browser, dataset, "limit", page)
    assert (_budget(house, dataset).limit, _budget(house, dataset).remaining) == (before.limit, before.remaining)


def test_a_job_shows_room_and_risk(house: House, browse: Open, owner: rows.Key, dataset: str) -> None:
    browser, budget = browse(owner), _budget(house, dataset)
    page = _ask(browser, dataset, "job", job_epsilon="0.5").text
    found = re.search(r"<strong>([0-9]+) more jobs?</strong>", page)
    assert found is not None
    assert int(found[1]) > 0
    assert _read_rows(page)["Spent and reserved"][0].startswith("ε 0.")
    refused = _ask(browser, dataset, "job", job_epsilon="2.5").text
    assert "The limit of the account has no room for it." in refused
    fits = _ask(browser, dataset, "job", job_epsilon=f"{budget.remaining.epsilon:.9f}"[:-1]).text
    assert "The budget covers a job" in fits


def test_an_allocation_is_shown_set_and_removed(
    house: House, browse: Open, owner: rows.Key, analyst: rows.Key, dataset: str
) -> None:
    browser = browse(owner)
    for typed, shown in (("0.7", ("none", "0.7")), ("0.4", ("0.7", "0.4")), ("", ("0.4", "none"))):
        page = _ask(browser, dataset, "allocation", allocation_key=analyst.id, allocation_epsilon=typed).text
        assert _read_rows(page)["Allocation, ε"] == shown
        answer = _confirm(browser, dataset, "allocation", page)
        assert answer.status_code == 303, answer.text
        allocations = {each.key_id: each.limit.epsilon for each in _budget(house, dataset).allocations or ()}
        assert allocations == ({analyst.id: float(typed)} if typed else {})


def test_keys_of_a_form_and_of_tables_have_names(house: House, browse: Open, owner: rows.Key, dataset: str) -> None:
    with house.database.write() as tx:
        named = rows.api_key(tx, "analyst", name="Income study")
    with house.client() as client:
        body = {"shared_with": [named.id], "allocations": [{"key_id": named.id, "epsilon": 0.5}]}
        assert client.patch(f"/v1/datasets/{dataset}", json=body, headers=owner.headers).status_code == 200
    browser = browse(owner)
    page = browser.get(f"/dashboard/populations/{dataset}").text
    assert f'<option value="{named.id}">Income study ({named.id})</option>' in page
    assert f'<th scope="row">Income study <code>{named.id}</code></th>' in page
    assert f"<li>Income study <code>{named.id}</code></li>" in browser.get(f"/dashboard/datasets/{dataset}").text


def test_an_allocation_bounds_the_analyst_who_asks(
    house: House, browse: Open, owner: rows.Key, analyst: rows.Key, dataset: str
) -> None:
    browser = browse(owner)
    page = _ask(browser, dataset, "allocation", allocation_key=analyst.id, allocation_epsilon="0.3").text
    _confirm(browser, dataset, "allocation", page)
    assert "Your allocation has no room for it." in _ask(browse(analyst), dataset, "job", job_epsilon="0.5").text
    assert "The budget covers a job" in _ask(browser, dataset, "job", job_epsilon="0.5").text


@pytest.mark.long
@pytest.mark.parametrize(
    ("kind", "typed", "field"),
    [
        ("job", {"job_epsilon": "a half"}, "job_epsilon"),
        ("job", {"job_epsilon": "0"}, "job_epsilon"),
        ("job", {"job_epsilon": "1e-200"}, "job_epsilon"),
        ("limit", {"limit_epsilon": "", "limit_delta": "1e-7"}, "limit_epsilon"),
        ("limit", {"limit_epsilon": "0"}, "limit_epsilon"),
        ("limit", {"limit_epsilon": "900"}, "limit_epsilon"),
        ("limit", {"limit_epsilon": "3"}, "limit_delta"),
        ("limit", {"limit_epsilon": "3", "limit_delta": "0.5"}, "limit_delta"),
        ("limit", {"limit_epsilon": "1", "limit_delta": "1e-7"}, "limit_delta"),
        ("limit", {"limit_epsilon": "0.0001"}, "limit_epsilon"),
        ("allocation", {"allocation_epsilon": "0.5"}, "allocation_key"),
        ("allocation", {"allocation_epsilon": "-1", "allocation_key": "key_of_nobody"}, "allocation_epsilon"),
        (
            "allocation",
            {"allocation_epsilon": "0.5", "allocation_key": "key_01jd0000000000000000000000"},
            "allocation_epsilon",
        ),
    ],
)
def test_a_wrong_form_keeps_its_entries_and_names_the_field(
    house: House, browse: Open, owner: rows.Key, dataset: str, kind: str, typed: dict[str, str], field: str
) -> None:
    before = _dump(house)
    answer = _ask(browse(owner), dataset, kind, **typed)
    assert answer.status_code in {409, 422}, answer.text
    assert find_faults(answer.text) == []
    assert "There is a problem" in answer.text
    assert f'<a href="#{field}">' in answer.text
    assert f'id="{field}-fault"' in answer.text
    for name, value in typed.items():
        assert name == "allocation_key" or f'name="{name}" value="{value}"' in answer.text
    assert _dump(house) == before


def test_an_allocation_below_what_is_spent_names_its_field(
    house: House, browse: Open, owner: rows.Key, analyst: rows.Key, dataset: str
) -> None:
    browser = browse(owner)
    page = _ask(browser, dataset, "allocation", allocation_key=analyst.id, allocation_epsilon="1").text
    assert _confirm(browser, dataset, "allocation", page).status_code == 303
    house.run(house.job(dataset, analyst))
    answer = _ask(browser, dataset, "allocation", allocation_key=analyst.id, allocation_epsilon="0.1")
    assert answer.status_code == 409
    assert 'id="allocation_epsilon-fault"' in answer.text


def test_a_frozen_account_is_the_fault_of_no_field(house: House, browse: Open, owner: rows.Key, dataset: str) -> None:
    with house.database.write() as tx:
        house.ledger.freeze(tx, dataset, Cause.RUN)
    answer = _ask(browse(owner), dataset, "limit", limit_epsilon="1.5")
    assert (answer.status_code, "The account is frozen" in answer.text) == (409, True)
    assert 'id="limit_epsilon-fault"' not in answer.text


def test_a_confirmation_takes_effect_once_on_an_unchanged_account(
    house: House, browse: Open, owner: rows.Key, dataset: str
) -> None:
    browser = browse(owner)
    page = _ask(browser, dataset, "limit", limit_epsilon="1.5").text
    assert _confirm(browser, dataset, "limit", page).status_code == 303
    assert _confirm(browser, dataset, "limit", page).status_code == 303
    assert [entry.kind for entry in _entries(house, dataset)].count("limit_changed") == 1
    again = _confirm(browser, dataset, "limit", page, limit_epsilon="1.4")
    assert again.status_code == 409
    stale = _ask(browser, dataset, "limit", limit_epsilon="1.3").text
    house.job(dataset, owner)
    answer = _confirm(browser, dataset, "limit", stale)
    assert answer.status_code == 409
    assert "The account has changed since this page was made" in answer.text
    assert _budget(house, dataset).limit.epsilon == 1.5


def _entries(house: House, dataset: str) -> Any:
    with house.database.read() as session:
        return house.ledger.entries(session, dataset, limit=99, before=None)


def test_an_analyst_sees_the_question_about_jobs_only(
    browse: Open, analyst: rows.Key, owner: rows.Key, dataset: str
) -> None:
    page = browse(analyst).get(f"/dashboard/populations/{dataset}").text
    assert "what-if/job" in page
    for place in ("what-if/limit", "what-if/allocation"):
        assert place not in page
        assert place in browse(owner).get(f"/dashboard/populations/{dataset}").text


def test_changes_are_in_the_audit_log_and_questions_are_not(
    house: House, browse: Open, owner: rows.Key, auditor: rows.Key, dataset: str
) -> None:
    browser = browse(owner)
    page = _ask(browser, dataset, "limit", limit_epsilon="1.5").text
    _confirm(browser, dataset, "limit", page)
    entries = browser.get("/v1/audit-log", headers=auditor.headers).json()["items"]
    actions = [(each["action"], each["target"]) for each in entries if "/populations/" in each["action"]]
    assert actions == [("POST /dashboard/populations/{dataset_id}/limit", dataset)]


@pytest.mark.process
@pytest.mark.browser
@pytest.mark.long
@pytest.mark.parametrize("kind", ["job", "limit", "allocation"])
def test_questions_and_answers_have_no_accessibility_fault(
    visit: Visit, owner: rows.Key, dataset: str, kind: str
) -> None:
    page = visit(owner, f"/dashboard/populations/{dataset}")
    if kind == "job":
        check_appearance(page)
    page.run(f"""(() => {{
      const form = document.querySelector('form[action$="what-if/{kind}"]');
      for (const field of form.querySelectorAll('input')) field.value = field.id.endsWith('delta') ? '1e-7' : '2.5';
      for (const field of form.querySelectorAll('select')) field.selectedIndex = 1;
      form.requestSubmit();
    }})()""")
    page.wait("location.pathname.includes('what-if') && document.readyState === 'complete'")
    assert page.run("document.querySelector('main .panel[role=status]') !== null")
    check_appearance(page)
