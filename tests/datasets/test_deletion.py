"""``DELETE /v1/datasets/{id}``: the key is destroyed, the ledger stays, and the receipt states both."""

import dataclasses
from pathlib import Path

import httpx
import pytest

from app.datasets import deletion, repository
from app.datasets.models import Content, Dataset
from app.datasets.uploads.models import UploadPart
from app.db import Database, WriteSession
from app.errors import DependencyUnavailable, StateConflict
from app.jobs.models import Job
from app.main import create_app
from app.services import Services
from app.vault.errors import ObjectMissing
from app.vault.signing import verify
from app.vault.store import ObjectStore
from app.vault.wrapped_keys import WrappedKeys
from tests.factories import rows
from tests.factories.datasets import CSV, Check, declared, everything, problem, public_declaration, stored, uploaded
from tests.factories.transport import AppTransport


def delete(client: httpx.Client, key: rows.Key, dataset_id: str) -> httpx.Response:
    return client.delete(f"/v1/datasets/{dataset_id}", headers=key.headers)


def test_receipt_is_signed_with_a_published_key(client: httpx.Client, services: Services, owner: rows.Key) -> None:
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


def test_second_deletion_returns_the_same_receipt(client: httpx.Client, services: Services, owner: rows.Key) -> None:
    dataset = declared(client, owner)
    first = delete(client, owner, dataset["id"])
    tables, names = everything(services.database, services.areas)
    second = delete(client, owner, dataset["id"])
    assert (second.status_code, second.json()) == (200, first.json())
    after, left = everything(services.database, services.areas)
    ignored: dict[str, list[str]] = {"audit_entries": [], "audit_heads": []}  # each call is recorded
    assert (after | ignored, left) == (tables | ignored, names)


def test_receipt_states_how_long_copies_of_keys_are_kept(services: Services, owner: rows.Key) -> None:
    changed = dataclasses.replace(services, limits=dataclasses.replace(services.limits, key_backup_days=30))
    transport = AppTransport(create_app(changed, metrics=False))
    with httpx.Client(transport=transport, base_url="http://corevault.test") as client:
        receipt = delete(client, owner, declared(client, owner)["id"]).json()
    assert receipt["statement"]["backup_horizon_days"] == 30


def test_deletion_destroys_keys_and_uploads_at_once_and_keeps_the_ledger(
    client: httpx.Client, services: Services, database: Database, owner: rows.Key
) -> None:
    """W1: data without a key cannot be decrypted; the API destroys the keys without access to the vault."""
    dataset = declared(client, owner)
    with database.write() as tx:
        rows.content(tx, dataset["id"], table_object="0" * 32, wrapped_key=b"wrapped")
    uploaded(client, owner, dataset["id"])
    assert len(stored(services.areas)) == 1
    assert delete(client, owner, dataset["id"]).status_code == 200
    assert stored(services.areas) == []
    with pytest.raises(ObjectMissing):
        services.areas.keys.box(dataset["id"])
    with database.read() as session:
        contents = session.query(Content).order_by(Content.version).all()
    assert [content.wrapped_key for content in contents] == [None, None]
    assert contents[0].table_object is not None  # the worker's sweep deletes it by its name
    ledger = client.get(f"/v1/datasets/{dataset['id']}/ledger", headers=owner.headers).json()
    assert [entry["kind"] for entry in ledger["items"]] == ["dataset_deleted", "account_opened"]
    budget = client.get(f"/v1/datasets/{dataset['id']}/budget", headers=owner.headers).json()
    shown = client.get(f"/v1/datasets/{dataset['id']}", headers=owner.headers).json()
    assert (shown["status"], shown["columns"]) == ("deleted", dataset["columns"])
    assert budget["remaining"]["epsilon"] == shown["remaining"]["epsilon"] == 0
    assert budget["limit"] == shown["budget"] == dataset["budget"]


def test_dataset_key_is_never_in_the_database(client: httpx.Client, services: Services, owner: rows.Key) -> None:
    """So no backup of the database can restore it."""
    dataset = declared(client, owner)
    box = services.areas.keys.box(dataset["id"])
    tables, _ = everything(services.database, services.areas)
    assert repr(box) not in repr(tables)


@pytest.mark.sqlite
def test_destroyed_content_key_is_erased_from_the_database_files(
    client: httpx.Client, database: Database, owner: rows.Key, database_url: str
) -> None:
    """W1: SQLite's write-ahead log would otherwise keep the wrapped content keys."""
    dataset = declared(client, owner)
    secret = b"wrapped-key-of-a-content"
    with database.write() as tx:
        rows.content(tx, dataset["id"], table_object=None, wrapped_key=secret)
    file = Path(database_url.removeprefix("sqlite:///"))

    def on_disk() -> bool:
        return any(secret in path.read_bytes() for path in file.parent.glob(f"{file.name}*"))

    assert on_disk()
    delete(client, owner, dataset["id"])
    assert not on_disk()


@pytest.mark.sqlite
def test_deletion_does_not_wait_long_for_readers(client: httpx.Client, database: Database, owner: rows.Key) -> None:
    """Pages that readers keep in the write-ahead log are erased later."""
    dataset = declared(client, owner)
    with database.read() as session:
        assert session.get(Dataset, dataset["id"]) is not None
        assert delete(client, owner, dataset["id"]).status_code == 200
        assert not database.forget()
    assert database.forget()


def test_changes_of_a_deleted_dataset_are_refused(client: httpx.Client, services: Services, owner: rows.Key) -> None:
    dataset = declared(client, owner)
    delete(client, owner, dataset["id"])
    before = everything(services.database, services.areas)
    url = f"/v1/datasets/{dataset['id']}"
    problem(client.patch(url, json={"description": "new"}, headers=owner.headers), 409, "state_conflict")
    problem(client.put(f"{url}/budget", json={"epsilon": 1.0}, headers=owner.headers), 409, "state_conflict")
    problem(client.put(f"{url}/content", content=b"a", headers=owner.headers | CSV), 409, "state_conflict")
    assert everything(services.database, services.areas) == before


def test_receipt_for_public_data_states_no_ledger(client: httpx.Client, owner: rows.Key) -> None:
    dataset = client.post("/v1/datasets", json=public_declaration(), headers=owner.headers).json()
    assert delete(client, owner, dataset["id"]).json()["statement"]["ledger_kept"] is False


def test_only_its_owner_may_delete_a_dataset(client: httpx.Client, only_its_owner_may: Check) -> None:
    only_its_owner_may(lambda key, dataset_id: delete(client, key, dataset_id))


def test_deletion_ends_the_jobs_of_the_dataset(client: httpx.Client, database: Database, owner: rows.Key) -> None:
    """W10: every job ends, and a job that was never opened is not charged."""
    dataset = client.post("/v1/datasets", json=public_declaration(), headers=owner.headers).json()
    with database.write() as tx:
        job_id = rows.job(tx, dataset["id"], owner.id, cost_epsilon=None, cost_delta=None).id
    delete(client, owner, dataset["id"])
    with database.read() as session:
        job = session.get_one(Job, job_id)
    assert (job.status, job.error_code) == ("failed", "dataset_deleted")


def test_failing_deletion_hook_rolls_the_deletion_back(services: Services, owner: rows.Key) -> None:
    seen: list[tuple[str, bool]] = []

    def refuse(tx: WriteSession, dataset_id: str) -> None:
        seen.append((dataset_id, tx.get_one(Dataset, dataset_id).deleted_at is None))
        raise StateConflict

    app = create_app(dataclasses.replace(services, on_dataset_deleted=refuse), metrics=False)
    with httpx.Client(transport=AppTransport(app), base_url="http://corevault.test") as client:
        dataset = declared(client, owner)
        uploaded(client, owner, dataset["id"])
        before = everything(services.database, services.areas)
        problem(delete(client, owner, dataset["id"]), 409, "state_conflict")
    assert seen == [(dataset["id"], True)]
    assert everything(services.database, services.areas) == before


@pytest.mark.parametrize("call", ["destroy", "sign"])
def test_interrupted_deletion_is_finished_by_the_next_call(
    client: httpx.Client, services: Services, owner: rows.Key, monkeypatch: pytest.MonkeyPatch, call: str
) -> None:
    """W10: no receipt is signed before the key is destroyed, and a receipt is never withdrawn."""
    dataset = declared(client, owner)
    uploaded(client, owner, dataset["id"])

    def away(*_: object) -> None:
        raise DependencyUnavailable

    with monkeypatch.context() as patch:
        patch.setattr(*{"destroy": (WrappedKeys, "destroy", away), "sign": (deletion, "_sign_receipt", away)}[call])
        problem(delete(client, owner, dataset["id"]), 503, "dependency_unavailable")
    shown = client.get(f"/v1/datasets/{dataset['id']}", headers=owner.headers).json()
    assert shown["status"] == "deleted"
    with services.database.read() as session:
        assert session.get_one(Dataset, dataset["id"]).deletion_receipt is None
        assert repository.list_half_deleted(session) == [dataset["id"]]
    receipt = delete(client, owner, dataset["id"])
    assert (receipt.status_code, receipt.json()["statement"]["key_destroyed"]) == (200, True)
    with services.database.read() as session:
        assert repository.list_half_deleted(session) == []
    with pytest.raises(ObjectMissing):
        services.areas.keys.box(dataset["id"])


def test_deletion_succeeds_while_uploads_cannot_be_reached(
    client: httpx.Client, services: Services, owner: rows.Key, monkeypatch: pytest.MonkeyPatch
) -> None:
    dataset = declared(client, owner)
    uploaded(client, owner, dataset["id"])
    delete_object = type(services.areas.incoming).delete

    def away(store: ObjectStore, name: str) -> None:
        if store is services.areas.incoming:
            raise DependencyUnavailable
        delete_object(store, name)

    monkeypatch.setattr(type(services.areas.incoming), "delete", away)
    assert delete(client, owner, dataset["id"]).status_code == 200
    with services.database.read() as session:
        assert session.query(UploadPart).count() == 1  # the sweep deletes it by its name
