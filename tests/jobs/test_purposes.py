"""Purposes of jobs, and the names of their submitters and datasets: who sees them, and where they never are."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import httpx
import pytest
import sqlalchemy as sa
from sqlalchemy import delete

from app.datasets.models import DatasetShare
from app.db import Database
from tests.factories import rows
from tests.factories.datasets import problem
from tests.factories.worker import House, job_body

PURPOSE = "canary-purpose: Table 2 of the income study"
Read = Callable[[str, rows.Key], httpx.Response]


@pytest.fixture
def read(api: httpx.Client) -> Read:
    return lambda path, key: api.get(path, headers=key.headers)


@pytest.fixture
def job_id(api: httpx.Client, analyst: rows.Key, dataset_id: str) -> str:
    answer = api.post("/v1/jobs", json=job_body(dataset_id, purpose=PURPOSE), headers=analyst.headers)
    assert answer.status_code == 202, answer.text
    return str(answer.json()["id"])


@contextmanager
def statements(database: Database) -> Iterator[list[str]]:
    """Record the SQL statements of a block."""
    seen: list[str] = []

    def sent(_: object, __: object, statement: str, *___: object) -> None:
        seen.append(statement)

    sa.event.listen(database.engine, "before_cursor_execute", sent)
    try:
        yield seen
    finally:
        sa.event.remove(database.engine, "before_cursor_execute", sent)


def test_every_reader_of_the_job_sees_purpose_and_names(
    house: House, read: Read, analyst: rows.Key, owner: rows.Key, auditor: rows.Key, admin: rows.Key, job_id: str
) -> None:
    seen = read(f"/v1/jobs/{job_id}", analyst).json()
    assert seen["purpose"] == PURPOSE
    assert seen["submitted_by"] == {"id": analyst.id, "name": "a key"}
    assert seen["dataset_name"] == "adult"
    for key in (owner, auditor, admin):
        assert read(f"/v1/jobs/{job_id}", key).json() == seen
        assert read("/v1/jobs", key).json()["items"] == [seen]
    house.run(job_id)
    events = read(f"/v1/jobs/{job_id}/events", analyst).text
    assert PURPOSE in events
    assert '"dataset_name":"adult"' in events


def test_other_analysts_of_the_dataset_do_not_see_a_purpose(
    house: House, read: Read, owner: rows.Key, analyst: rows.Key, dataset_id: str, job_id: str
) -> None:
    """W3: another analyst of the same dataset sees neither the job nor its purpose."""
    with house.database.write() as tx:
        other = rows.api_key(tx, "analyst")
        tx.add(DatasetShare(dataset_id=dataset_id, key_id=other.id))
    house.run(job_id)
    release = house.read(job_id).release_id
    jobs = ("/v1/jobs", f"/v1/jobs/{job_id}", f"/v1/jobs/{job_id}/events")
    paths = (*jobs, f"/v1/datasets/{dataset_id}", f"/v1/datasets/{dataset_id}/budget", "/v1/releases")
    assert [path for path in paths if "canary-purpose" in read(path, other).text] == []
    public = (f"/v1/releases/{release}", f"/v1/releases/{release}/certificate", f"/v1/releases/{release}/points")
    assert [path for path in public if "canary-purpose" in read(path, other).text] == []


def test_purpose_is_in_no_message_and_no_entry_of_the_chain(house: House, job_id: str) -> None:
    house.run(job_id)
    with house.database.read() as session:
        stored = {
            table: [row for row in session.execute(sa.text(f"SELECT * FROM {table}")) if "canary-purpose" in str(row)]
            for table in ("ledger_entries", "ledger_checkpoints", "releases", "audit_entries")
        }
    assert [table for table, found in stored.items() if found] == []
    assert "canary-purpose" not in str(house.queue.sent)
    assert "purpose" not in house.read(job_id).request


def test_submitter_without_access_does_not_see_the_datasets_name(
    house: House, read: Read, analyst: rows.Key, owner: rows.Key, dataset_id: str, job_id: str
) -> None:
    with house.database.write() as tx:
        tx.execute(delete(DatasetShare).where(DatasetShare.dataset_id == dataset_id))
    for seen in (read(f"/v1/jobs/{job_id}", analyst).json(), read("/v1/jobs", analyst).json()["items"][0]):
        assert (seen["dataset_name"], seen["purpose"]) == (None, PURPOSE)
    assert read(f"/v1/jobs/{job_id}", owner).json()["dataset_name"] == "adult"


def test_ledger_entries_of_a_job_name_submitter_purpose_and_dataset(
    read: Read, owner: rows.Key, analyst: rows.Key, auditor: rows.Key, dataset_id: str, job_id: str
) -> None:
    for key in (owner, auditor):
        reserved, opened = read(f"/v1/datasets/{dataset_id}/ledger", key).json()["items"]
        assert (reserved["kind"], reserved["job_id"], reserved["purpose"]) == ("reserved", job_id, PURPOSE)
        assert reserved["submitted_by"] == {"id": analyst.id, "name": "a key"}
        assert (opened["kind"], opened["submitted_by"], opened["purpose"]) == ("account_opened", None, None)
        assert {(entry["dataset_id"], entry["dataset_name"]) for entry in (reserved, opened)} == {(dataset_id, "adult")}


@pytest.mark.parametrize(
    "purpose", ["", "x" * 201, "two\nlines", "bell\x07", "back\u202ewards", "line\u2028two", "   ", 7, ["a"]]
)
def test_purpose_that_is_not_one_short_line_is_refused(
    api: httpx.Client, analyst: rows.Key, dataset_id: str, purpose: object
) -> None:
    for path in ("/v1/quotes", "/v1/jobs"):
        answer = api.post(path, json=job_body(dataset_id, purpose=purpose), headers=analyst.headers)
        refusal = problem(answer, 422, "invalid_request")
        assert [fault["pointer"] for fault in refusal["errors"]] == ["/purpose"]


def test_purpose_may_be_absent_null_or_as_long_as_allowed(
    api: httpx.Client, analyst: rows.Key, dataset_id: str
) -> None:
    for purpose in (None, "é" * 200):
        answer = api.post("/v1/jobs", json=job_body(dataset_id, purpose=purpose), headers=analyst.headers)
        assert (answer.status_code, answer.json()["purpose"]) == (202, purpose)
    answer = api.post("/v1/jobs", json=job_body(dataset_id), headers=analyst.headers)
    assert answer.json()["purpose"] is None


def test_names_of_a_submission_cost_no_statement(
    house: House, api: httpx.Client, analyst: rows.Key, dataset_id: str
) -> None:
    """The answer has the names that the submission has read anyway. On SQLite it took 23 statements without them."""
    body = job_body(dataset_id, privacy={"noise_multiplier": 200.0, "sampling_rate": 1.0, "iterations": 5})
    assert api.post("/v1/jobs", json=body, headers=analyst.headers).status_code == 202
    with statements(house.database) as seen:
        assert api.post("/v1/jobs", json=body | {"purpose": PURPOSE}, headers=analyst.headers).status_code == 202
    assert len(seen) <= 23, seen
