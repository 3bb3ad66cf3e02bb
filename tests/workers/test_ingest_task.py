"""An upload's way into the vault, as the worker carries it: once, whatever is repeated, lost or refused."""

from itertools import pairwise
from typing import Any

import httpx
import pytest
from sqlalchemy import update

from app.datasets.models import Content, Dataset
from app.datasets.uploads.models import UploadPart
from app.errors import DependencyUnavailable
from app.vault.errors import VaultError
from tests.datasets.test_uploading import digest
from tests.factories import rows
from tests.factories.datasets import declared, public_declaration, stored, uploaded
from tests.factories.uploads import complete, sent
from tests.factories.worker import House, job_body
from workers import ingest_task as module
from workers.enclave import Failed, Outcome, ingest

TABLE = b"age,hours,sex,income_gt_50k\n20,40,Male,1\n30,50,Female,0\n"


def received(house: House, api: httpx.Client, owner: rows.Key, content: bytes = TABLE) -> tuple[str, str]:
    """Ids of a dataset and of its content that waits for the worker."""
    dataset_id = declared(api, owner, slots=100)["id"]
    uploaded(api, owner, dataset_id, content)
    (_, content_id) = house.queue.sent.pop()
    return dataset_id, content_id


def read(house: House, content_id: str) -> Content:
    with house.database.read() as session:
        return session.get_one(Content, content_id)


def test_a_content_is_put_in_force_once(house: House, api: httpx.Client, owner: rows.Key) -> None:
    dataset_id, content_id = received(house, api, owner)
    house.ingestion().run(content_id)
    first = read(house, content_id)
    assert (first.status, first.attempts) == ("ready", 1)
    house.ingestion().run(content_id)
    assert read(house, content_id).table_object == first.table_object
    assert api.get(f"/v1/datasets/{dataset_id}", headers=owner.headers).json()["status"] == "ready"
    house.sweeper.sweep()
    assert stored(house.areas) == [first.table_object]


@pytest.mark.parametrize(("sensitivity", "status"), [("public", "succeeded"), ("private", "failed")])
def test_private_rows_are_never_read_as_public_ones(
    house: House, api: httpx.Client, owner: rows.Key, sensitivity: str, status: str
) -> None:
    """W1: the key's box says what the owner declared, whatever somebody has written into the database since."""
    declaration = public_declaration() if sensitivity == "public" else {}
    dataset_id = declared(api, owner, **(declaration | {"slots": 100}))["id"]
    uploaded(api, owner, dataset_id, TABLE)
    house.work()
    with house.database.write() as tx:
        tx.execute(update(Dataset).values(sensitivity="public"))
    body = job_body(dataset_id, method="uniform", parameters={})
    response = api.post("/v1/jobs", json=body, headers=owner.headers)
    house.work()
    job = house.read(response.json()["id"])
    assert (job.status, job.release_id is None) == (status, status == "failed")


def test_a_faulty_file_is_rejected_by_its_code(house: House, api: httpx.Client, owner: rows.Key) -> None:
    _, content_id = received(house, api, owner, b"age\n1\n")
    house.ingestion().run(content_id)
    assert (read(house, content_id).status, read(house, content_id).rejection) == ("rejected", "missing_column")
    house.sweeper.sweep()
    assert stored(house.areas) == []


@pytest.mark.parametrize(("outcome", "attempts"), [(Failed(transient=True), 0), (Failed(transient=False), 1)])
def test_what_failed_is_tried_again(
    house: House, api: httpx.Client, owner: rows.Key, monkeypatch: pytest.MonkeyPatch, outcome: Outcome, attempts: int
) -> None:
    """W10: a store that is away is no fault of the file, and costs it no attempt."""
    _, content_id = received(house, api, owner)
    monkeypatch.setattr(module, "ingest", lambda *_, **__: outcome)
    house.ingestion().run(content_id)
    assert (read(house, content_id).status, read(house, content_id).attempts) == ("received", attempts)


def test_a_store_that_goes_away_is_waited_for(
    house: House, api: httpx.Client, owner: rows.Key, monkeypatch: pytest.MonkeyPatch
) -> None:
    def away(*_: Any, **__: Any) -> Outcome:
        raise DependencyUnavailable

    _, content_id = received(house, api, owner)
    monkeypatch.setattr(module, "ingest", away)
    house.ingestion().run(content_id)
    assert (read(house, content_id).status, read(house, content_id).attempts) == ("received", 0)


def test_a_dataset_that_is_deleted_meanwhile_keeps_nothing(
    house: House, api: httpx.Client, owner: rows.Key, monkeypatch: pytest.MonkeyPatch
) -> None:
    dataset_id, content_id = received(house, api, owner)

    def overtaken(*arguments: Any, **keywords: Any) -> Outcome:
        outcome = ingest(*arguments, **keywords)
        assert api.delete(f"/v1/datasets/{dataset_id}", headers=owner.headers).status_code == 200
        return outcome

    monkeypatch.setattr(module, "ingest", overtaken)
    house.ingestion().run(content_id)
    assert stored(house.areas) == []


def in_parts(api: httpx.Client, owner: rows.Key, bodies: list[bytes], **announced: Any) -> str:
    """The id of a dataset whose upload in parts is complete."""
    dataset_id: str = declared(api, owner, slots=100)["id"]
    place = f"/v1/datasets/{dataset_id}/uploads"
    begun = api.post(place, json={"media_type": "text/csv"} | announced, headers=owner.headers)
    sent(api, owner, begun.headers["location"], *bodies)
    assert complete(api, owner, begun.headers["location"]).status_code == 202
    return dataset_id


def shown(api: httpx.Client, owner: rows.Key, dataset_id: str) -> dict[str, Any]:
    content: dict[str, Any] = api.get(f"/v1/datasets/{dataset_id}", headers=owner.headers).json()["content"]
    return content


@pytest.mark.parametrize("cuts", [(), (5,), (5, 5, 28, 29, 40)])
def test_parts_are_read_as_the_whole(house: House, api: httpx.Client, owner: rows.Key, cuts: tuple[int, ...]) -> None:
    bounds = [0, *cuts, len(TABLE)]
    bodies = [TABLE[start:end] for start, end in pairwise(bounds)]
    dataset_id = in_parts(api, owner, bodies, digest=digest(TABLE), length=len(TABLE))
    house.work()
    assert shown(api, owner, dataset_id) == {"version": 1, "status": "ready", "rejection": None}
    house.sweeper.sweep()
    assert len(stored(house.areas)) == 1
    whole = declared(api, owner, slots=100)["id"]  # another population, the same bytes
    uploaded(api, owner, whole, TABLE)
    house.work()
    assert shown(api, owner, whole)["rejection"] == "duplicate_content"


def test_another_digest_of_the_whole_rejects_the_content(house: House, api: httpx.Client, owner: rows.Key) -> None:
    dataset_id = in_parts(api, owner, [TABLE[:9], TABLE[9:]], digest=digest(TABLE + b"x"))
    house.work()
    assert shown(api, owner, dataset_id) == {"version": 1, "status": "rejected", "rejection": "digest_mismatch"}


def test_an_upload_of_no_bytes_is_empty(house: House, api: httpx.Client, owner: rows.Key) -> None:
    dataset_id = in_parts(api, owner, [])
    house.work()
    assert shown(api, owner, dataset_id)["rejection"] == "empty"


def test_w1_parts_that_were_exchanged_are_never_read(house: House, api: httpx.Client, owner: rows.Key) -> None:
    """W1: whoever alters the database, but has no key, has no other bytes read in their place."""
    dataset_id = in_parts(api, owner, [TABLE[:28], TABLE[28:42], TABLE[42:]])
    with house.database.write() as tx:
        first, second = tx.query(UploadPart).filter(UploadPart.number > 0).order_by(UploadPart.number)
        first.number = None
        tx.flush()
        second.number = 1
        tx.flush()
        first.number = 2
        (content,) = tx.query(Content)
    with pytest.raises(VaultError):
        house.ingestion().run(content.id)
    assert shown(api, owner, dataset_id)["status"] == "received"
