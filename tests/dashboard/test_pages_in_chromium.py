"""Every page and state of the dashboard in a real browser: WCAG 2.2 AA, the keyboard, and no overflow."""

import json
from collections.abc import Iterator, Mapping
from typing import Any, Final

import pytest
import sqlalchemy as sa

from app.db import now
from app.jobs import workers
from app.ledger import Cause
from app.releases.models import Release
from support.chromium import Chromium, Page
from tests.dashboard.appearance import check_appearance
from tests.dashboard.conftest import Visit
from tests.dashboard.test_access import RULES
from tests.factories import rows
from tests.factories.tampering import table
from tests.factories.worker import House, job_body

LOADED: Final = "document.readyState === 'complete'"
LONG: Final = "A name that is long and has no end " * 5
WORD: Final = "a_name_without_any_space_" * 5
GRADES: Final = ("calibrated", "centre-only", "not-usable")
Fields = Mapping[str, str]


class States:
    """The objects whose pages are shown, and the ways to their states."""

    def __init__(self, house: House, owner: rows.Key, analyst: rows.Key, auditor: rows.Key, admin: rows.Key) -> None:
        self.house = house
        self.keys = {"owner": owner, "analyst": analyst, "auditor": auditor, "admin": admin}
        with house.database.write() as tx:
            self.empty = {role: rows.api_key(tx, role) for role in ("owner", "analyst")}
        self.dataset = house.ready_dataset(owner, name=WORD, shared_with=(analyst.id,), description=LONG)
        self.releases = [self._publish(grade) for grade in GRADES]
        self.done = house.job(self.dataset, analyst, purpose=LONG[:190])
        house.run(self.done)
        self.running, self.failed = house.job(self.dataset, owner), house.job(self.dataset, owner)
        self._change_job(self.running, status="running", stage="running", steps_done=2, steps_planned=5)
        self._change_job(self.failed, status="failed", stage="failed", error_code="run_failed", ended_at=now())
        with house.client() as client:
            too_much = job_body(self.dataset, privacy={"epsilon": 1.99})
            refused = client.post("/v1/jobs", json=too_much | {"method": "dp-psvi-surrogate"}, headers=analyst.headers)
            assert refused.status_code in {409, 422}
            self.deleted = house.ready_dataset(owner, name=LONG[:190])
            assert client.delete(f"/v1/datasets/{self.deleted}", headers=owner.headers).status_code == 200
        for name in ("census of last year", LONG[:190], "census of two years ago"):
            self.related = house.ready_dataset(owner, name=name, population="residents")
        with house.database.write() as tx:
            for name in ("worker-1", LONG[:60]):
                workers.begin(tx, name=name, version="0.1.0", processes=2)
        self.frozen = house.ready_dataset(owner, name="frozen", population="p" * 190)
        with house.database.write() as tx:
            house.ledger.freeze(tx, self.frozen, Cause.RUN)
            self.rejected = rows.dataset(tx, owner.id, sensitivity="public").id
            rows.content(tx, self.rejected, status="rejected", rejection="missing_column", rejection_columns=["wages"])

    def _publish(self, grade: str) -> str:
        self.house.run(job := self.house.job(self.dataset, self.keys["owner"]))
        release = self.house.read(job).release_id
        assert release is not None
        reliability = {"grade": grade, "reasons": [{"code": "few_rows", "words": LONG}] * (grade != GRADES[0])}
        with self.house.database.write() as tx:
            body = tx.get_one(Release, release).body | {"reliability": reliability}
            tx.execute(sa.update(Release).where(Release.id == release).values(body=body))
        return release

    def _change_job(self, job: str, **values: Any) -> None:
        with self.house.database.write() as tx:
            jobs = table("jobs")
            tx.execute(sa.update(jobs).where(jobs.c.id == job).values(**values))

    def list_pages(self, role: str) -> Iterator[str]:
        """List the pages that a role opens."""
        ids = {"dataset_id": self.dataset, "job_id": self.done, "key_id": self.keys["owner"].id}
        for page, of_page in PAGES.items():
            if of_page == role:
                yield page.format_map({**ids, "release_id": self.releases[0]})
        yield from {
            "owner": (
                *(f"/dashboard/datasets/{each}" for each in (self.rejected, self.deleted, self.frozen)),
                *(f"/dashboard/populations/{each}" for each in (self.deleted, self.frozen, self.related)),
                *(f"/dashboard/jobs/{each}" for each in (self.running, self.failed)),
                *(f"/dashboard/releases/{each}" for each in self.releases[1:]),
                f"/dashboard/price?dataset_id={self.dataset}",
                "/dashboard/jobs?status=cancelled",
                "/dashboard/nowhere",
                "/dashboard/releases",
                "/dashboard/keys",
            ),
            "analyst": (f"/dashboard/datasets/{self.dataset}", f"/dashboard/populations/{self.dataset}"),
            "auditor": (f"/dashboard/populations/{self.dataset}", "/dashboard/audit-log?target=nothing"),
        }.get(role, ())


PAGES: Final[Mapping[str, str]] = {
    "/dashboard": "owner",
    "/dashboard/populations/{dataset_id}": "owner",
    "/dashboard/populations/{dataset_id}/verification": "auditor",
    "/dashboard/datasets/{dataset_id}": "owner",
    "/dashboard/datasets/{dataset_id}/delete": "owner",
    "/dashboard/datasets/{dataset_id}/upload": "owner",
    "/dashboard/declare": "owner",
    "/dashboard/jobs": "owner",
    "/dashboard/jobs/{job_id}": "analyst",
    "/dashboard/price": "analyst",
    "/dashboard/releases": "nobody",
    "/dashboard/releases/{release_id}": "nobody",
    "/dashboard/audit-log": "auditor",
    "/dashboard/keys": "admin",
    "/dashboard/keys/{key_id}/revoke": "admin",
    "/dashboard/system": "auditor",
    "/dashboard/sign-in": "nobody",
}
"""Each page, and the role that opens it here."""
OWNER_PARTS: Final = 4
"""Number of tests among which the pages of the owner are divided."""
OTHERS: Final = ("entries.csv", "/chain", "/receipt", "/files/{name}", "/static/", "/content", "{upload_id}")
REDIRECTS: Final = (
    "/dashboard/",
    "/dashboard/{address:path}",
    "/dashboard/sign-in/provider",
    "/dashboard/sign-in/callback",
)


@pytest.fixture
def states(house: House, owner: rows.Key, analyst: rows.Key, auditor: rows.Key, admin: rows.Key) -> States:
    return States(house, owner, analyst, auditor, admin)


def _send(page: Page, action: str, **fields: str) -> None:
    """Fill in the form whose address ends with ``action``, and send it."""
    page.run(f"""(() => {{
      const form = document.querySelector('main form[action$="{action}"]');
      for (const [name, value] of Object.entries({json.dumps(fields)})) form.elements[name].value = value;
      for (const each of form.querySelectorAll('[name=features]')) each.checked = each.value !== fields_target(form);
      function fields_target(form) {{ return form.elements.target?.value; }}
      window.isSent = true;
      form.requestSubmit(form.querySelector('button[value=declare]:not(.hidden)') ?? undefined);
    }})()""")
    page.wait(f"window.isSent === undefined && {LOADED}")


def test_every_page_is_in_the_list() -> None:
    read = {rule.partition(" ")[2] for rule in RULES if rule.startswith("GET ")} - set(REDIRECTS)
    assert {each for each in read if not any(part in each for part in OTHERS)} == set(PAGES)


@pytest.mark.process
@pytest.mark.browser
@pytest.mark.long
@pytest.mark.parametrize(
    ("role", "part"), [*(("owner", part) for part in range(OWNER_PARTS)), ("analyst", 0), ("auditor", 0), ("admin", 0)]
)
def test_pages_of_a_role_are_accessible(states: States, visit: Visit, address: str, role: str, part: int) -> None:
    page = visit(states.keys[role], "/dashboard")
    for path in list(states.list_pages(role))[part :: OWNER_PARTS if role == "owner" else 1]:
        page.open(f"{address}{path}")
        check_appearance(page)


@pytest.mark.process
@pytest.mark.browser
@pytest.mark.long
def test_pages_of_visitors_are_accessible(states: States, chromium: Chromium, address: str) -> None:
    page = Page(chromium)
    for path in states.list_pages("nobody"):
        page.open(f"{address}{path}")
        check_appearance(page)
    page.open(f"{address}/dashboard/sign-in")
    _send(page, "/sign-in", key="cv_wrong")
    check_appearance(page)


@pytest.mark.process
@pytest.mark.browser
@pytest.mark.long
@pytest.mark.parametrize("role", ["owner", "analyst"])
def test_first_pages_without_data_are_accessible(states: States, visit: Visit, address: str, role: str) -> None:
    page = visit(states.empty[role], "/dashboard")
    for path in ("", "/price", "/jobs"):
        page.open(f"{address}/dashboard{path}")
        check_appearance(page)


@pytest.mark.process
@pytest.mark.browser
@pytest.mark.long
@pytest.mark.slow
def test_answers_to_forms_are_accessible(states: States, visit: Visit, address: str) -> None:
    page = visit(states.keys["owner"], "/dashboard")
    price, dataset = f"/price?dataset_id={states.dataset}", f"/datasets/{states.dataset}"
    forms: tuple[tuple[str, str, Fields, str], ...] = (
        (price, "/price", {"goal": "cost", "epsilon": "x", "size": "-1"}, "There is a problem"),
        (price, "/price", {"target": "income_gt_50k", "goal": "cost", "epsilon": "0.1"}, "The budget covers this job"),
        (price, "/price", {"target": "income_gt_50k", "goal": "cost", "epsilon": "1.99"}, "does not cover"),
        (price, "/price", {"target": "income_gt_50k", "widening": "1.5"}, "Expected accuracy"),
        (f"{dataset}/delete", "/delete", {"confirmed_name": "other"}, "There is a problem"),
        (f"/populations/{states.dataset}", "/what-if/limit", {"limit_epsilon": "x"}, "There is a problem"),
        ("/declare", "/declare", {"slots": "x"}, "There is a problem"),
    )
    for path, action, fields, words in forms:
        page.open(f"{address}/dashboard{path}")
        _send(page, action, **fields)
        assert words in page.run("document.querySelector('main').innerText"), path
        check_appearance(page)


@pytest.mark.process
@pytest.mark.browser
@pytest.mark.long
def test_a_new_key_is_shown_on_an_accessible_page(states: States, visit: Visit) -> None:
    page = visit(states.keys["admin"], "/dashboard/keys")
    for fields, words in (({"name": ""}, "There is a problem"), ({"name": "ward 7", "role": "owner"}, "cv_")):
        _send(page, "/keys", **fields)
        assert words in page.run("document.querySelector('main').innerText")
        check_appearance(page)
