"""The worker ingests an upload once, also after repeated messages, failures and rejections."""

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
    """The ids of a dataset and of its content, which is not ingested yet."""
    dataset_id = declared(api, owner, slots=100)["id"]
    uploaded(api, owner, dataset_id, content)
    (_, content_id) = house.queue.sent.pop()
    return dataset_id, content_id


def read(house: House, content_id: str) -> Content:
    with house.database.read() as session:
        return session.get_one(Content, content_id)


def test_content_is_ingested_once(house: House, api: httpx.Client, owner: rows.Key) -> None:
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
    """W1: the key's box is bound to the owner's declaration, so a change of the database has no effect."""
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


def test_faulty_file_is_rejected_with_a_code(house: House, api: httpx.Client, owner: rows.Key) -> None:
    _, content_id = received(house, api, owner, b"age\n1\n")
    house.ingestion().run(content_id)
    assert (read(house, content_id).status, read(house, content_id).rejection) == ("rejected", "missing_column")
    house.sweeper.sweep()
    assert stored(house.areas) == []


@pytest.mark.parametrize(("outcome", "attempts"), [(Failed(transient=True), 0), (Failed(transient=False), 1)])
def test_failed_ingestion_is_retried(
    house: House, api: httpx.Client, owner: rows.Key, monkeypatch: pytest.MonkeyPatch, outcome: Outcome, attempts: int
) -> None:
    """W10: a store that is away is not the file's fault, so no attempt is counted."""
    _, content_id = received(house, api, owner)
    monkeypatch.setattr(module, "ingest", lambda *_, **__: outcome)
    house.ingestion().run(content_id)
    assert (read(house, content_id).status, read(house, content_id).attempts) == ("received", attempts)


def test_ingestion_is_retried_if_the_store_is_away(
    house: House, api: httpx.Client, owner: rows.Key, monkeypatch: pytest.MonkeyPatch
) -> None:
    def away(*_: Any, **__: Any) -> Outcome:
        raise DependencyUnavailable

    _, content_id = received(house, api, owner)
    monkeypatch.setattr(module, "ingest", away)
    house.ingestion().run(content_id)
    assert (read(house, content_id).status, read(house, content_id).attempts) == ("received", 0)


def test_dataset_deleted_during_ingestion_leaves_no_object(
    house: House, api: httpx.Client, owner: rows.Key, monkeypatch: pytest.MonkeyPatch
) -> None:
    dataset_id, content_id = received(house, api, owner)

    def ingest_and_delete(*arguments: Any, **keywords: Any) -> Outcome:
        outcome = ingest(*arguments, **keywords)
        assert api.delete(f"/v1/datasets/{dataset_id}", headers=owner.headers).status_code == 200
        return outcome

    monkeypatch.setattr(module, "ingest", ingest_and_delete)
    house.ingestion().run(content_id)
    assert stored(house.areas) == []


def in_parts(api: httpx.Client, owner: rows.Key, bodies: list[bytes], **announced: Any) -> str:
    """The id of a dataset whose upload in parts is complete."""
    dataset_id: str = declared(api, owner, slots=100)["id"]
    place = f"/v1/datasets/{dataset_id}/uploads"
    created = api.post(place, json={"media_type": "text/csv"} | announced, headers=owner.headers)
    sent(api, owner, created.headers["location"], *bodies)
    assert complete(api, owner, created.headers["location"]).status_code == 202
    return dataset_id


def shown(api: httpx.Client, owner: rows.Key, dataset_id: str) -> dict[str, Any]:
    content: dict[str, Any] = api.get(f"/v1/datasets/{dataset_id}", headers=owner.headers).json()["content"]
    return content


@pytest.mark.long
@pytest.mark.parametrize("cuts", [(), (5,), (5, 5, 28, 29, 40)])
def test_upload_in_parts_equals_the_whole(
    house: House, api: httpx.Client, owner: rows.Key, cuts: tuple[int, ...]
) -> None:
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


def test_a_deleted_dataset_is_the_population_of_its_file(house: House, api: httpx.Client, owner: rows.Key) -> None:
    first = declared(api, owner, slots=100)["id"]
    uploaded(api, owner, first, TABLE)
    house.work()
    receipt = api.delete(f"/v1/datasets/{first}", headers=owner.headers).json()
    assert receipt["statement"]["population"] == first
    for population, rejection in ((None, "duplicate_content"), (first, None)):
        again = declared(api, owner, slots=100, population=population)["id"]
        uploaded(api, owner, again, TABLE)
        house.work()
        assert shown(api, owner, again)["rejection"] == rejection


def test_content_with_another_digest_is_rejected(house: House, api: httpx.Client, owner: rows.Key) -> None:
    dataset_id = in_parts(api, owner, [TABLE[:9], TABLE[9:]], digest=digest(TABLE + b"x"))
    house.work()
    assert shown(api, owner, dataset_id) == {"version": 1, "status": "rejected", "rejection": "digest_mismatch"}


def test_upload_without_bytes_is_rejected_as_empty(house: House, api: httpx.Client, owner: rows.Key) -> None:
    dataset_id = in_parts(api, owner, [])
    house.work()
    assert shown(api, owner, dataset_id)["rejection"] == "empty"


def test_w1_parts_in_another_order_are_never_read(house: House, api: httpx.Client, owner: rows.Key) -> None:
    """W1: somebody who alters the database, but has no key, cannot have other bytes read."""
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
