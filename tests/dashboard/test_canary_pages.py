"""W3: canary values of private tables are in no page, for no role.

Good rows, invalid cells and identifiers of people contain them, also in a rejected file and in an unfinished upload.
"""

from collections.abc import Iterator, Mapping
from typing import Any, Final

import httpx
import pytest
from fastapi import FastAPI

from tests.dashboard.browser import open_browser
from tests.dashboard.test_access import JOB, RULES
from tests.e2e import canaries
from tests.e2e.house import COLUMNS
from tests.factories import rows
from tests.factories.datasets import CSV
from tests.factories.worker import House, job_body

PERSON: Final[dict[str, Any]] = {"name": "person", "type": "integer", "lower": 0, "upper": 10**12}
LARGE: Final = {"noise_multiplier": 0.2, "sampling_rate": 1.0, "iterations": 1}
"""More than the budget covers."""
MODEL: Final = {"family": "logistic-regression", "features": ["age", "dose"], "target": "sick"}
MORE: Final[list[tuple[str, dict[str, str]]]] = [
    ("populations/{dataset_id}/what-if/job", {"job_epsilon": "0.5"}),
    ("populations/{dataset_id}/what-if/job", {"job_epsilon": "1e-300"}),
    ("populations/{dataset_id}/what-if/limit", {"limit_epsilon": "3", "limit_delta": "1e-7"}),
    ("populations/{dataset_id}/what-if/allocation", {"allocation_key": "{analyst_id}", "allocation_epsilon": "1"}),
    ("price", {**JOB, "target": "sick", "epsilon": "0.3"}),
    ("price", {**JOB, "target": "sick", "epsilon": "1.99"}),
    ("price", {**JOB, "target": "dose"}),
    ("jobs", {**JOB, "target": "sick", "epsilon": "1.99"}),
    ("declare", {"name": "x", "action": "declare", "column-0-name": "age", "column-0-type": "integer"}),
]
"""Forms that lead to pages with results or faults."""


@pytest.fixture
def keys(house: House) -> dict[str, rows.Key]:
    with house.database.write() as tx:
        return {role: rows.api_key(tx, role) for role in ("owner", "analyst", "auditor", "admin")}


def _make_dataset(
    client: httpx.Client, house: House, keys: Mapping[str, rows.Key], content: bytes, **changes: Any
) -> str:
    """Declare a dataset, upload the content, and let a worker read it."""
    body = {
        "name": "ward",
        "sensitivity": "private",
        "columns": COLUMNS,
        "privacy_unit": {"kind": "row"},
        "slots": 1_000,
    }
    body |= {"budget": {"epsilon": 2.0}, "shared_with": [keys["analyst"].id]}
    answer = client.post("/v1/datasets", json=body | changes, headers=keys["owner"].headers)
    assert answer.status_code == 201, answer.text
    dataset = str(answer.json()["id"])
    _upload(client, house, keys, dataset, content)
    assert _read_status(client, keys, dataset) == "ready"
    return dataset


def _upload(client: httpx.Client, house: House, keys: Mapping[str, rows.Key], dataset: str, content: bytes) -> None:
    place, headers = f"/v1/datasets/{dataset}", keys["owner"].headers
    assert client.put(f"{place}/content", content=content, headers=headers | CSV).status_code == 202
    house.work()


def _read_status(client: httpx.Client, keys: Mapping[str, rows.Key], dataset: str) -> str:
    return str(client.get(f"/v1/datasets/{dataset}", headers=keys["owner"].headers).json()["status"])


def _use(client: httpx.Client, house: House, keys: Mapping[str, rows.Key], dataset: str) -> dict[str, str]:
    """Run a job, refuse one, reject files and begin an upload; return the ids."""
    owner = keys["owner"].headers
    body = job_body(dataset, model=MODEL)
    done = client.post("/v1/jobs", json=body, headers=owner).json()["id"]
    house.work()
    release = house.read(done).release_id
    assert release is not None
    assert client.post("/v1/jobs", json=body | {"privacy": LARGE}, headers=owner).status_code == 409
    waiting = client.post("/v1/jobs", json=body, headers=keys["analyst"].headers).json()["id"]
    for content in canaries.BAD_TABLES:
        _upload(client, house, keys, dataset, content)
    place = f"/v1/datasets/{dataset}/uploads"
    upload = client.post(place, json={"media_type": "text/csv"}, headers=owner).json()["id"]
    part = client.patch(f"{place}/{upload}", content=canaries.TEXT.encode(), headers=owner | {"Upload-Offset": "0"})
    assert part.status_code == 204, part.text
    ids = {"dataset_id": dataset, "job_id": done, "release_id": release, "upload_id": upload, "waiting_id": waiting}
    return ids | {"key_id": keys["owner"].id, "analyst_id": keys["analyst"].id}


def _read_pages(browser: httpx.Client, ids: Mapping[str, str]) -> Iterator[tuple[str, httpx.Response]]:
    """Read every page by GET, then send the forms that change nothing."""
    for page in sorted(name for name in RULES if name.startswith("GET")):
        path = page.removeprefix("GET ").replace("{address:path}", "nowhere")
        yield page, browser.get(path.format_map({**ids, "address": "nowhere", "name": "points.csv"}))
    yield "job", browser.get(f"/dashboard/jobs/{ids['waiting_id']}")
    for name, form in MORE:
        typed = {key: value.format_map(ids) for key, value in form.items()}
        yield f"POST {name}", browser.post(f"/dashboard/{name.format_map(ids)}", data=typed)


def _change_pages(browser: httpx.Client, ids: Mapping[str, str]) -> Iterator[tuple[str, httpx.Response]]:
    """Send every other form and call of a page. Signing out comes last."""
    names = sorted((name for name in RULES if not name.startswith("GET")), key=lambda name: "sign-out" in name)
    for page in names:
        method, _, path = page.partition(" ")
        form = {"": "", **{key: value.format_map(ids) for key, value in RULES[page].form.items()}}
        yield page, browser.request(method, path.format_map(ids), data=form)


def _search(pages: Iterator[tuple[str, httpx.Response]]) -> tuple[list[object], set[str]]:
    """Search the answers; return the canaries with their pages, and the pages that were shown."""
    found, shown = list[object](), set[str]()
    for name, answer in pages:
        whole = answer.content + repr(answer.headers.raw).encode()
        found += [(name, needle) for needle in canaries.find_needles(whole)]
        if answer.status_code < 400:
            shown.add(name)
    return found, shown


@pytest.mark.long
def test_no_page_of_any_role_has_a_canary(house: House, pages: FastAPI, keys: dict[str, rows.Key]) -> None:
    with open_browser(pages) as client:
        person = {"kind": "column", "column": "person", "max_rows": 5}
        every = [
            _use(client, house, keys, dataset)
            for dataset in (
                _make_dataset(client, house, keys, canaries.canary_table()),
                _make_dataset(
                    client, house, keys, canaries.people_table(), columns=[PERSON, *COLUMNS], privacy_unit=person
                ),
            )
        ]
    visible = set[str]()
    for step in (_read_pages, _change_pages):
        for key in (None, *keys.values()):
            for ids in every:
                with open_browser(pages, key) as browser:
                    found, shown = _search(step(browser, ids))
                assert found == [], key
                visible |= shown
    assert len(visible) > 35
    assert {"GET /dashboard/datasets/{dataset_id}", "GET /dashboard/populations/{dataset_id}/chain"} <= visible


def test_the_search_finds_a_canary_that_a_page_shows(house: House, pages: FastAPI, keys: dict[str, rows.Key]) -> None:
    """A description is public; here it has a canary."""
    dataset = house.ready_dataset(keys["owner"], description=f"about {canaries.TEXT}")
    with open_browser(pages, keys["owner"]) as browser:
        found, _ = _search(iter([("page", browser.get(f"/dashboard/datasets/{dataset}"))]))
    assert found == [("page", canaries.TEXT.encode())]
