"""``DELETE /v1/datasets/{id}``: the key goes, the ledger stays, and the receipt says so."""

import dataclasses
from pathlib import Path

import httpx
import pytest

from app.datasets.models import Content, Dataset, DatasetKey
from app.datasets.uploads.models import UploadPart
from app.db import Database, WriteSession
from app.errors import DependencyUnavailable, StateConflict
from app.jobs.models import Job
from app.main import create_app
from app.services import Services
from app.vault.signing import verify
from tests.factories import rows
from tests.factories.datasets import CSV, Check, declared, everything, problem, public_declaration, stored, uploaded
from tests.factories.transport import AppTransport


def delete(client: httpx.Client, key: rows.Key, dataset_id: str) -> httpx.Response:
    return client.delete(f"/v1/datasets/{dataset_id}", headers=key.headers)


def test_the_receipt_is_signed_with_a_published_key(client: httpx.Client, services: Services, owner: rows.Key) -> None:
    dataset = declared(client, owner)
    uploaded(client, owner, dataset["id"])
    response = delete(client, owner, dataset["id"])
    receipt, statement = response.json(), response.json()["statement"]
    (ledger_key,) = (key for key in services.verification_keys if key.use == "ledger")
    assert response.status_code == 200
    assert verify(receipt, ledger_key.public_key)
    assert not verify(receipt | {"statement": statement | {"key_destroyed": False}}, ledger_key.public_key)
    assert (statement["dataset_id"], statement["population"]) == (dataset["id"], dataset["population"])
    assert (statement["key_destroyed"], statement["ledger_kept"], statement["content_versions"]) == (True, True, [1])
    assert statement["deleted_at"].endswith("Z")
    assert statement["backup_horizon_days"] == 0


def test_a_second_deletion_answers_with_the_same_receipt(
    client: httpx.Client, services: Services, owner: rows.Key
) -> None:
    dataset = declared(client, owner)
    first = delete(client, owner, dataset["id"])
    before = everything(services.database, services.store)
    second = delete(client, owner, dataset["id"])
    assert (second.status_code, second.json()) == (200, first.json())
    assert everything(services.database, services.store) == before


def test_keys_and_bytes_are_gone_and_the_ledger_stays(
    client: httpx.Client, services: Services, database: Database, owner: rows.Key
) -> None:
    """W1: what nobody holds a key for, nobody opens again; the sealed original goes at once."""
    dataset = declared(client, owner)
    with services.store.create() as table:
        table.write(b"table")
        with database.write() as tx:
            rows.content(tx, dataset["id"], table_object=table.publish(), wrapped_key=b"wrapped")
    uploaded(client, owner, dataset["id"])
    assert len(stored(services.store)) == 2
    assert delete(client, owner, dataset["id"]).status_code == 200
    assert stored(services.store) == []
    with database.read() as session:
        assert session.get(DatasetKey, dataset["id"]) is None
        assert [content.wrapped_key for content in session.query(Content)] == [None, None]
    ledger = client.get(f"/v1/datasets/{dataset['id']}/ledger", headers=owner.headers).json()
    assert [entry["kind"] for entry in ledger["items"]] == ["dataset_deleted", "account_opened"]
    assert client.get(f"/v1/datasets/{dataset['id']}/budget", headers=owner.headers).status_code == 200
    shown = client.get(f"/v1/datasets/{dataset['id']}", headers=owner.headers).json()
    assert (shown["status"], shown["columns"]) == ("deleted", dataset["columns"])


@pytest.mark.sqlite
def test_a_destroyed_key_is_gone_from_the_disk_too(
    client: httpx.Client, database: Database, owner: rows.Key, database_url: str
) -> None:
    """W1: the receipt says that the key is destroyed; SQLite's log would keep it, for whoever holds the opening key."""
    dataset = declared(client, owner)
    with database.write() as tx:
        rows.content(tx, dataset["id"], table_object=None, wrapped_key=b"wrapped-key-of-a-content")
    with database.read() as session:
        secrets = (session.get_one(DatasetKey, dataset["id"]).sealed_key, b"wrapped-key-of-a-content")
    file = Path(database_url.removeprefix("sqlite:///"))

    def on_disk() -> list[bool]:
        return [any(secret in path.read_bytes() for path in file.parent.glob(f"{file.name}*")) for secret in secrets]

    assert on_disk() == [True, True]
    delete(client, owner, dataset["id"])
    assert on_disk() == [False, False]


@pytest.mark.sqlite
def test_a_deletion_does_not_wait_long_for_readers(client: httpx.Client, database: Database, owner: rows.Key) -> None:
    """What they keep in the log is forgotten later."""
    dataset = declared(client, owner)
    with database.read() as session:
        assert session.get(DatasetKey, dataset["id"]) is not None
        assert delete(client, owner, dataset["id"]).status_code == 200
        assert not database.forget()
    assert database.forget()


def test_nothing_more_is_done_to_a_deleted_dataset(client: httpx.Client, services: Services, owner: rows.Key) -> None:
    dataset = declared(client, owner)
    delete(client, owner, dataset["id"])
    before = everything(services.database, services.store)
    url = f"/v1/datasets/{dataset['id']}"
    problem(client.patch(url, json={"description": "new"}, headers=owner.headers), 409, "state_conflict")
    problem(client.put(f"{url}/budget", json={"epsilon": 1.0}, headers=owner.headers), 409, "state_conflict")
    problem(client.put(f"{url}/content", content=b"a", headers=owner.headers | CSV), 409, "state_conflict")
    assert everything(services.database, services.store) == before


def test_public_data_is_deleted_without_a_ledger(client: httpx.Client, owner: rows.Key) -> None:
    dataset = client.post("/v1/datasets", json=public_declaration(), headers=owner.headers).json()
    assert delete(client, owner, dataset["id"]).json()["statement"]["ledger_kept"] is False


def test_only_its_owner_deletes(client: httpx.Client, only_its_owner_may: Check) -> None:
    only_its_owner_may(lambda key, dataset_id: delete(client, key, dataset_id))


def test_a_job_of_the_dataset_ends_with_it(client: httpx.Client, database: Database, owner: rows.Key) -> None:
    """W10: every job ends, and what was never opened is not charged."""
    dataset = client.post("/v1/datasets", json=public_declaration(), headers=owner.headers).json()
    with database.write() as tx:
        job_id = rows.job(tx, dataset["id"], owner.id, cost_epsilon=None, cost_delta=None).id
    delete(client, owner, dataset["id"])
    with database.read() as session:
        job = session.get_one(Job, job_id)
    assert (job.status, job.error_code) == ("failed", "dataset_deleted")


def test_what_others_do_about_a_deletion_happens_with_it_or_not_at_all(services: Services, owner: rows.Key) -> None:
    seen: list[tuple[str, bool]] = []

    def refuse(tx: WriteSession, dataset_id: str) -> None:
        seen.append((dataset_id, tx.get_one(Dataset, dataset_id).deleted_at is None))
        raise StateConflict

    app = create_app(dataclasses.replace(services, on_dataset_deleted=refuse), metrics=False)
    with httpx.Client(transport=AppTransport(app), base_url="http://corevault.test") as client:
        dataset = declared(client, owner)
        uploaded(client, owner, dataset["id"])
        before = everything(services.database, services.store)
        problem(delete(client, owner, dataset["id"]), 409, "state_conflict")
    assert seen == [(dataset["id"], True)]
    assert everything(services.database, services.store) == before


def test_a_store_that_is_away_does_not_undo_a_deletion(
    client: httpx.Client, services: Services, owner: rows.Key, monkeypatch: pytest.MonkeyPatch
) -> None:
    dataset = declared(client, owner)
    uploaded(client, owner, dataset["id"])

    def away(*_: object) -> None:
        raise DependencyUnavailable

    monkeypatch.setattr(type(services.store), "delete", away)
    assert delete(client, owner, dataset["id"]).status_code == 200
    with services.database.read() as session:
        assert session.query(UploadPart).count() == 1  # the sweep finds it by its name
