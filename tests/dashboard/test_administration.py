"""The pages of the audit log, of API keys and of the system."""

import html
import re
from datetime import timedelta
from typing import Any

import httpx
import pytest
from sqlalchemy import update

from app.auth import repository as auth
from app.continuous_audit.bookkeeping import compute_design
from app.continuous_audit.models import AuditState
from app.db import now
from app.errors import DependencyUnavailable
from app.health.readiness import Readiness
from app.inference.audit.batches import list_weights
from app.jobs import workers
from app.jobs.models import Worker
from tests.dashboard.browser import code_of, sign_in
from tests.dashboard.conftest import Open
from tests.dashboard.html_checks import find_faults, remove_scripts
from tests.factories import rows
from tests.factories.worker import House, job_body

HOSTILE = "<script>alert('x')</script>"
EMPTY = {"": ""}


def _once(page: httpx.Response) -> str:
    return page.text.partition('name="once" value="')[2].partition('"')[0]


def _new_key(browser: httpx.Client, **changes: str) -> dict[str, str]:
    once = _once(browser.get("/dashboard/keys"))
    return {"name": "ward 7", "role": "analyst", "expires_on": "", "once": once} | changes


def test_a_created_key_is_shown_once_and_works(browse: Open, admin: rows.Key) -> None:
    browser = browse(admin)
    fields = _new_key(browser, name=HOSTILE)
    answer = browser.post("/dashboard/keys", data=fields)
    (secret,) = re.findall(r"cv_[0-9a-z]{10}_[A-Za-z0-9_-]{43}", answer.text)
    assert answer.headers["cache-control"] == "no-store"
    assert "<script" not in remove_scripts(answer.text)[0]
    me = browser.get("/v1/me", headers={"Authorization": f"Bearer {secret}"}).json()
    assert (me["role"], me["name"]) == ("analyst", HOSTILE)
    again = browser.post("/dashboard/keys", data=fields)
    assert again.status_code == 200
    assert "cv_" not in again.text
    assert "This form was sent twice." in again.text
    listed = browser.get("/dashboard/keys").text
    assert find_faults(listed) == find_faults(answer.text) == find_faults(again.text) == []
    assert secret not in listed
    assert listed.count("/revoke") == 2
    assert "<script" not in remove_scripts(listed)[0]


def test_the_last_day_of_a_key_counts_in_full(house: House, browse: Open, admin: rows.Key) -> None:
    browser = browse(admin)
    browser.post("/dashboard/keys", data=_new_key(browser, expires_on=f"{now():%Y-%m-%d}"))
    keys = browser.get("/v1/api-keys", headers=admin.headers).json()["items"]
    (expires_at,) = [key["expires_at"] for key in keys if key["expires_at"]]
    assert expires_at.startswith(f"{now() + timedelta(days=1):%Y-%m-%d}T00:00:00")


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("name", "", "Use at least 1 character."),
        ("role", "", "Use one of:"),
        ("role", "root", "Use one of:"),
        ("expires_on", "soon", "Write the day as year-month-day"),
        ("expires_on", "2020-01-01", "Use a time in the future."),
    ],
)
def test_mistakes_in_a_new_key_keep_the_input(
    browse: Open, admin: rows.Key, field: str, value: str, message: str
) -> None:
    browser = browse(admin)
    answer = browser.post("/dashboard/keys", data=_new_key(browser, **{field: value}))
    assert answer.status_code == 422
    link = answer.text.partition(f'<a href="#{field}">')[2].partition("</a>")[0]
    assert message in link
    assert link.startswith({"name": "Name: ", "role": "Role: ", "expires_on": "Last day: "}[field])
    assert field == "name" or 'value="ward 7"' in answer.text


def test_a_form_without_its_key_creates_nothing(browse: Open, admin: rows.Key) -> None:
    browser = browse(admin)
    assert browser.post("/dashboard/keys", data=_new_key(browser, once="")).status_code == 422
    assert browser.get("/dashboard/keys").text.count("/revoke") == 1


def test_a_revocation_asks_first_and_ends_sessions(browse: Open, admin: rows.Key, analyst: rows.Key) -> None:
    browser, other = browse(admin), browse(analyst)
    assert "Revoke the key" in browser.get(f"/dashboard/keys/{analyst.id}/revoke").text
    assert other.get("/dashboard").status_code == 200
    answer = browser.post(f"/dashboard/keys/{analyst.id}/revoke", data=EMPTY)
    assert (answer.status_code, answer.headers["location"]) == (303, "/dashboard/keys")
    assert other.get("/dashboard").status_code == 303
    assert browser.get(f"/dashboard/keys/{analyst.id}/revoke").status_code == 404


def test_the_last_administrator_cannot_be_revoked(browse: Open, admin: rows.Key) -> None:
    browser = browse(admin)
    assert "You will be signed out" in browser.get(f"/dashboard/keys/{admin.id}/revoke").text
    answer = browser.post(f"/dashboard/keys/{admin.id}/revoke", data=EMPTY)
    assert (answer.status_code, code_of(answer)) == (409, "state_conflict")
    assert browser.get("/dashboard").status_code == 200


@pytest.mark.parametrize("path", ["/dashboard/keys", "/dashboard/keys/{}/revoke"])
def test_forms_from_other_sites_change_no_key(browse: Open, admin: rows.Key, analyst: rows.Key, path: str) -> None:
    browser = browse(admin)
    fields = _new_key(browser)
    answer = browser.post(path.format(analyst.id), data=fields, headers={"Sec-Fetch-Site": "cross-site"})
    assert answer.status_code == 403
    assert browser.get("/dashboard/keys").text.count("/revoke") == 2


def test_the_audit_log_can_be_filtered(house: House, browse: Open, auditor: rows.Key, owner: rows.Key) -> None:
    browser = browse(auditor)
    sign_in(browser, "cv_wrong")
    sign_in(browse(owner), owner.secret)
    page = browser.get("/dashboard/audit-log").text
    assert "unauthenticated" in page
    assert owner.id in page
    page = browser.get("/dashboard/audit-log", params={"actor": owner.id, "outcome": "succeeded"}).text
    assert owner.id in page
    assert "unauthenticated" not in page
    page = browser.get("/dashboard/audit-log", params={"target": HOSTILE}).text
    assert "No entry matches" in page
    assert "<script" not in remove_scripts(page)[0]
    for query in ({"outcome": "other"}, {"since": "x"}, {"cursor": "x"}):
        assert browser.get("/dashboard/audit-log", params=query).status_code == 422


def test_the_audit_log_names_keys_and_datasets(house: House, browse: Open, auditor: rows.Key, owner: rows.Key) -> None:
    dataset = house.ready_dataset(owner, name=HOSTILE)
    with house.client() as client:
        job = client.post("/v1/jobs", json=job_body(dataset), headers=owner.headers).json()["id"]
        client.patch(f"/v1/datasets/{dataset}", json={"description": "x"}, headers=owner.headers)
    page = browse(auditor).get("/dashboard/audit-log").text
    name = html.escape(HOSTILE, quote=False).replace("'", "&#39;")
    with house.database.read() as session:
        owners_name = auth.read_names(session, [owner.id])[owner.id]
    assert f'<a class="name" href="/dashboard/datasets/{dataset}">{name}</a>' in page
    assert f'href="/dashboard/jobs/{job}"' in page
    assert f'<span class="name">{owners_name}</span><span class="soft"><code>{owner.id}</code></span>' in page
    assert find_faults(page) == []


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"alarmed_at": now()}, "The audit has raised an alarm"),
        ({"damaged": True}, "The state of the audit cannot be read</h3><p>No private data is opened until"),
        (
            {"capitals": {}, "log_evidence": 3.0, "log_largest": 3.0, "design": compute_design(list_weights())},
            "The state of the audit cannot be read</h3><p>The next sweep of a worker will stop",
        ),
        ({"last_at": now() - timedelta(days=2)}, "would not detect a small defect in time"),
    ],
)
def test_the_system_page_shows_faults_of_the_audit(
    browse: Open, house: House, admin: rows.Key, values: dict[str, Any], words: str
) -> None:
    browser = browse(admin)
    assert words not in browser.get("/dashboard/system").text
    with house.database.write() as tx:
        tx.execute(update(AuditState).values(**values))
    page = browser.get("/dashboard/system").text
    assert "Continuous privacy audit" in page
    assert words in page


def test_the_system_page_states_the_readiness(
    house: House, browse: Open, auditor: rows.Key, monkeypatch: pytest.MonkeyPatch
) -> None:
    browser = browse(auditor)
    page = browser.get("/dashboard/system").text
    assert "The service is ready" in page
    assert "Jobs that wait for a worker" in page
    assert "rejected" not in page.lower()
    assert house.services.verification_keys[0].key_id in page
    assert "<button" not in page.partition("<main")[2]

    def fail(_: Readiness) -> tuple[str, ...]:
        raise DependencyUnavailable("The database does not answer.")

    monkeypatch.setattr(Readiness, "check", fail)
    assert "The service is not ready" in browser.get("/dashboard/system").text
    monkeypatch.setattr(Readiness, "check", lambda _: ("broker",))
    assert "works without broker" in browser.get("/dashboard/system").text


def test_the_system_page_shows_workers(house: House, browse: Open, auditor: rows.Key) -> None:
    """A silent worker is not healthy, and its number of jobs is unknown."""
    browser = browse(auditor)
    assert "it is unknown whether one runs" in browser.get("/dashboard/system").text
    with house.database.write() as tx:
        killed, _ = (workers.begin(tx, name=name, version="1", processes=2) for name in ("killed-one", "alive-one"))
        tx.execute(update(Worker).where(Worker.id == killed).values(seen_at=now() - timedelta(minutes=5)))
    page = browser.get("/dashboard/system").text
    assert find_faults(page) == []
    cells = {name: page.partition(f">{name}<")[2].partition("</tr>")[0] for name in ("killed-one", "alive-one")}
    assert "state-worker-silent" in cells["killed-one"]
    assert 'data-label="Running jobs">unknown<' in cells["killed-one"]
    assert "state-worker-alive" in cells["alive-one"]
    assert 'data-label="Running jobs">0<' in cells["alive-one"]
    assert "/v1/workers" in page
