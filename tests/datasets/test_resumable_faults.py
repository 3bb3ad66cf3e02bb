"""Interrupted and overtaken parts, and crashes: a part is stored completely or not at all."""

import dataclasses
import hashlib
import secrets
import threading
from collections.abc import Callable, Iterator
from concurrent import futures
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

import httpx
import pytest
from nacl.public import PrivateKey, SealedBox

from app.datasets.models import Dataset
from app.datasets.uploads import parts, repository, service
from app.datasets.uploads.models import Upload
from app.db import Database, now
from app.errors import DependencyUnavailable
from app.main import create_app
from app.services import Services
from app.vault.wrapped_keys import WrappedKeys
from app.vault.writer import UploadWriter
from tests.datasets.test_uploading import digest
from tests.factories import rows
from tests.factories.datasets import CSV, declared, entries, everything, problem, stored
from tests.factories.line import SETTLE_SECONDS
from tests.factories.transport import AppTransport
from tests.factories.uploads import TABLE, Address, change, complete, left, offset_of, send, sent, sweep
from tests.vault.test_upload_writer import disk_of

WhileArriving = Callable[[Callable[[httpx.Client], None]], httpx.Client]
"""Registers an action for the time while the next part arrives; returns the client that performs it."""


def test_another_process_continues_an_upload(
    client: httpx.Client, services: Services, owner: rows.Key, begun: Callable[..., Address]
) -> None:
    """W10: the state of an upload is in the database and in the store only."""
    address = begun(length=len(TABLE))
    offset = sent(client, owner, address, TABLE[:100])
    other = create_app(dataclasses.replace(services), metrics=False)
    with httpx.Client(transport=AppTransport(other), base_url="http://corevault.test") as elsewhere:
        assert offset_of(elsewhere, owner, address) == offset
        sent(elsewhere, owner, address, TABLE[offset:])
    assert complete(client, owner, address).status_code == 202


def test_of_concurrent_parts_one_is_stored(
    client: httpx.Client, services: Services, owner: rows.Key, begun: Callable[..., Address]
) -> None:
    """W10: the part that holds the lease is stored, and the others are refused."""
    address = begun()
    bodies = [bytes([number]) * 200_000 for number in range(6)]
    with ThreadPoolExecutor(6) as pool:
        answers = list(pool.map(lambda body: send(client, owner, address, 0, body), bodies))
    refused = [answer for answer in answers if answer.status_code != 204]
    assert len(refused) == 5
    assert {answer.json()["code"] for answer in refused} <= {"state_conflict", "offset_mismatch"}
    assert offset_of(client, owner, address) == 200_000
    assert len(stored(services.areas)) == 1


@pytest.fixture
def while_a_part_arrives(
    services: Services, owner: rows.Key, monkeypatch: pytest.MonkeyPatch
) -> Iterator[WhileArriving]:
    """A client that acts just before the next part is published."""
    application = create_app(services, metrics=False)
    with httpx.Client(transport=AppTransport(application), base_url="http://corevault.test") as meanwhile:

        def arrange(act: Callable[[httpx.Client], None]) -> httpx.Client:
            publish = parts.Part.publish

            def act_then_publish(part: parts.Part, writer: Any) -> int:
                monkeypatch.setattr(parts.Part, "publish", publish)
                act(meanwhile)
                return publish(part, writer)

            monkeypatch.setattr(parts.Part, "publish", act_then_publish)
            return meanwhile

        yield arrange


def test_during_a_part_other_parts_and_completion_are_refused(
    client: httpx.Client,
    owner: rows.Key,
    begun: Callable[..., Address],
    while_a_part_arrives: WhileArriving,
) -> None:
    address = begun()

    def rival(meanwhile: httpx.Client) -> None:
        problem(send(meanwhile, owner, address, 0, b"rival"), 409, "state_conflict")
        problem(complete(meanwhile, owner, address), 409, "state_conflict")

    while_a_part_arrives(rival)
    assert sent(client, owner, address, b"abc") == 3


def test_a_part_with_an_expired_lease_is_refused(
    client: httpx.Client,
    services: Services,
    owner: rows.Key,
    begun: Callable[..., Address],
    while_a_part_arrives: WhileArriving,
) -> None:
    """W10: after another part has continued the upload, the slow part is not stored."""
    address = begun()

    def overtake(meanwhile: httpx.Client) -> None:
        change(services, lease_until=now() - timedelta(seconds=1))
        sent(meanwhile, owner, address, b"rival")

    while_a_part_arrives(overtake)
    problem(send(client, owner, address, 0, b"abc"), 409, "state_conflict")
    assert offset_of(client, owner, address) == 5
    assert len(stored(services.areas)) == 1


def test_no_key_of_a_part_survives_a_concurrent_deletion(
    client: httpx.Client,
    services: Services,
    owner: rows.Key,
    dataset_id: str,
    begun: Callable[..., Address],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """W10: the process dies after it stored the key. The receipt states that all keys are destroyed."""
    address, keep = begun(), WrappedKeys.keep_part
    entered, may_continue = threading.Event(), threading.Event()

    def slow(keys: WrappedKeys, object_name: str, box: bytes) -> None:
        entered.set()
        assert may_continue.wait(SETTLE_SECONDS)
        keep(keys, object_name, box)

    monkeypatch.setattr(WrappedKeys, "keep_part", slow)
    monkeypatch.setattr(parts.Part, "give_up", lambda _: None)
    with ThreadPoolExecutor(2) as pool:
        part = pool.submit(send, client, owner, address, 0, b"abc")
        assert entered.wait(SETTLE_SECONDS)
        deletion = pool.submit(client.delete, f"/v1/datasets/{dataset_id}", headers=owner.headers)
        futures.wait([deletion], 2)  # it waits for the part; otherwise it would end before the key is stored
        may_continue.set()
        assert deletion.result().status_code == 200
        assert part.result().status_code in {204, 409}, "stored before the deletion, or refused"
    assert [box for box in entries(services.areas.keys.store).values() if box] == []


@pytest.mark.parametrize("end", ["upload", "dataset"])
def test_a_part_of_an_ended_upload_is_not_stored(
    client: httpx.Client,
    services: Services,
    owner: rows.Key,
    dataset_id: str,
    begun: Callable[..., Address],
    while_a_part_arrives: WhileArriving,
    end: str,
) -> None:
    address = begun()
    ended = address if end == "upload" else f"/v1/datasets/{dataset_id}"

    def delete(meanwhile: httpx.Client) -> None:
        assert meanwhile.delete(ended, headers=owner.headers).is_success

    while_a_part_arrives(delete)
    problem(send(client, owner, address, 0, b"abc"), 409, "state_conflict")
    sweep(services)
    assert stored(services.areas) == []


def test_an_upload_continues_after_the_store_was_full(
    client: httpx.Client,
    services: Services,
    owner: rows.Key,
    begun: Callable[..., Address],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    address = begun()
    sent(client, owner, address, b"abc")
    before = stored(services.areas)

    def full(*_: object) -> None:
        raise DependencyUnavailable

    with monkeypatch.context() as patch:
        patch.setattr(UploadWriter, "finish", full)
        answer = send(client, owner, address, 3)
    problem(answer, 503, "dependency_unavailable")
    assert int(answer.headers["retry-after"]) > 0
    assert stored(services.areas) == before
    assert sent(client, owner, address, TABLE) == 3 + len(TABLE)


@pytest.mark.files
@pytest.mark.parametrize("way", ["whole", "part"])
def test_a_full_disk_is_unavailable_and_no_byte_is_stored(
    client: httpx.Client, services: Services, owner: rows.Key, dataset_id: str, begun: Callable[..., Address], way: str
) -> None:
    """W10: the operating system limits the size of files, and no file stays half-written."""
    address = begun() if way == "part" else f"/v1/datasets/{dataset_id}/content"
    before, body = left(services), bytes(2**20 - 1)
    with disk_of(900_000):
        if way == "part":
            answer = send(client, owner, address, 0, body)
        else:
            answer = client.put(address, content=body, headers=owner.headers | CSV)
    problem(answer, 503, "dependency_unavailable")
    assert left(services) == before
    if way == "part":
        assert sent(client, owner, address, body) == len(body)


@contextmanager
def crashing(step: str) -> Iterator[None]:
    """Let the process crash at that step, without giving the part up."""

    def crash(*_: object) -> None:
        raise RuntimeError

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(parts.Part, "give_up", lambda _: None)
        patch.setattr(parts.Part, step, crash)
        yield


@pytest.mark.parametrize("moment", ["claimed", "published"])
def test_objects_of_a_crashed_process_are_swept(
    client: httpx.Client,
    services: Services,
    owner: rows.Key,
    begun: Callable[..., Address],
    moment: str,
) -> None:
    """W10: an object's name is durable before its first byte. The upload continues after the lease expired."""
    address = begun()

    with crashing("create_writer" if moment == "claimed" else "keep"):
        problem(send(client, owner, address, 0), 500, "internal")
    problem(send(client, owner, address, 0), 409, "state_conflict")
    change(services, lease_until=now() - timedelta(seconds=1))
    assert sent(client, owner, address, TABLE) == len(TABLE)
    change(services, expires_at=now() - timedelta(seconds=1))
    sweep(services)
    assert left(services) == ([], [], [])


def test_a_part_that_finishes_after_the_sweep_is_not_stored(
    client: httpx.Client,
    services: Services,
    owner: rows.Key,
    begun: Callable[..., Address],
    while_a_part_arrives: WhileArriving,
) -> None:
    """W10: a part stalls until its upload was swept; then its bytes arrive, and the store would accept them."""
    address = begun()

    def end(meanwhile: httpx.Client) -> None:
        change(services, lease_until=now() - timedelta(seconds=1))
        assert meanwhile.delete(address, headers=owner.headers).status_code == 204
        sweep(services)
        assert left(services) == ([], [], [])

    while_a_part_arrives(end)
    assert send(client, owner, address, 0, b"abc").status_code in {409, 503}
    assert left(services) == ([], [], [])


def test_an_upload_completed_during_the_sweep_is_not_swept(
    client: httpx.Client,
    services: Services,
    owner: rows.Key,
    begun: Callable[..., Address],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """W10: the upload expires during its completion, and becomes a content with all of its parts."""
    sent(client, owner, begun(), b"abc")
    objects, select = stored(services.areas), repository.select_lapsed

    def select_too_early(*arguments: Any) -> Any:
        query = select(*arguments)
        with services.database.write() as tx:
            upload = tx.query(Upload).one()
            service.complete(tx, services, tx.get_one(Dataset, upload.dataset_id), upload)
        return query

    change(services, expires_at=now() - timedelta(seconds=1))
    with monkeypatch.context() as patch:
        patch.setattr(repository, "select_lapsed", select_too_early)
        sweep(services)
    assert stored(services.areas) == objects


def test_an_upload_in_one_request_expires_soon_after_a_crash(
    client: httpx.Client, services: Services, owner: rows.Key
) -> None:
    """No client can complete or delete it. So it must not count as open for long."""
    address = f"/v1/datasets/{declared(client, owner)['id']}/content"
    with crashing("keep"):
        problem(client.put(address, content=TABLE, headers=owner.headers | CSV), 500, "internal")
    with services.database.read() as session:
        upload = session.query(Upload).one()
    assert upload.expires_at - upload.created_at < timedelta(hours=1)
    change(services, expires_at=now() - timedelta(seconds=1), lease_until=now() - timedelta(seconds=1))
    sweep(services)
    assert left(services) == ([], [], [])


def test_w3_no_part_and_no_digest_is_stored_as_plaintext(
    client: httpx.Client, services: Services, owner: rows.Key, begun: Callable[..., Address]
) -> None:
    address = begun(length=len(TABLE), digest=digest(TABLE))
    sent(client, owner, address, TABLE)
    complete(client, owner, address)
    tables, names = everything(services.database, services.areas)
    text = repr(tables) + repr(names) + client.get(address, headers=owner.headers).text
    sealed = b"".join(entries(services.areas.incoming).values())
    assert b"20,40,Male" not in sealed
    for secret in ("20,40,Male", digest(TABLE)[9:20]):
        assert secret not in text


def test_w1_only_the_worker_opens_the_announced_digest(services: Services, owner: rows.Key, database: Database) -> None:
    secret = PrivateKey(secrets.token_bytes(32))
    worker = dataclasses.replace(services, sealing_key=bytes(secret.public_key))
    with httpx.Client(
        transport=AppTransport(create_app(worker, metrics=False)), base_url="http://corevault.test"
    ) as client:
        place = f"/v1/datasets/{declared(client, owner)['id']}/uploads"
        body = {"media_type": "text/csv", "digest": digest(TABLE)}
        assert client.post(place, json=body, headers=owner.headers).status_code == 201
    with database.read() as session:
        box = session.query(Upload).one().sealed_digest
    assert box is not None
    opened = bytes(SealedBox(secret).decrypt(box))[:32]
    assert opened == hashlib.sha256(TABLE).digest()
    with database.read() as session:
        assert session.query(Dataset).one().deleted_at is None
