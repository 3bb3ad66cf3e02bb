"""Parts that are cut off, overtaken, or lost with their process: kept whole or not at all."""

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

# Says what is done while the next part arrives, and by which client.
Meanwhile = Callable[[Callable[[httpx.Client], None]], httpx.Client]


def test_it_survives_a_restart_and_any_process_goes_on(
    client: httpx.Client, services: Services, owner: rows.Key, begun: Callable[..., Address]
) -> None:
    """W10: all that is known of an upload is in the database and in the store."""
    address = begun(length=len(TABLE))
    offset = sent(client, owner, address, TABLE[:100])
    other = create_app(dataclasses.replace(services), metrics=False)
    with httpx.Client(transport=AppTransport(other), base_url="http://corevault.test") as elsewhere:
        assert offset_of(elsewhere, owner, address) == offset
        sent(elsewhere, owner, address, TABLE[offset:])
    assert complete(client, owner, address).status_code == 202


def test_of_parts_at_the_same_time_one_is_kept(
    client: httpx.Client, services: Services, owner: rows.Key, begun: Callable[..., Address]
) -> None:
    """W10: whoever holds the lease; the others are told to look again."""
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
def while_a_part_arrives(services: Services, owner: rows.Key, monkeypatch: pytest.MonkeyPatch) -> Iterator[Meanwhile]:
    """A client whose next part does something else just before its bytes are published."""
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


def test_while_a_part_arrives_there_is_no_other_and_no_end(
    client: httpx.Client,
    owner: rows.Key,
    begun: Callable[..., Address],
    while_a_part_arrives: Meanwhile,
) -> None:
    address = begun()

    def rival(meanwhile: httpx.Client) -> None:
        problem(send(meanwhile, owner, address, 0, b"rival"), 409, "state_conflict")
        problem(complete(meanwhile, owner, address), 409, "state_conflict")

    while_a_part_arrives(rival)
    assert sent(client, owner, address, b"abc") == 3


def test_a_part_whose_lease_ran_out_is_overtaken(
    client: httpx.Client,
    services: Services,
    owner: rows.Key,
    begun: Callable[..., Address],
    while_a_part_arrives: Meanwhile,
) -> None:
    """W10: what a slow request brings after another has gone on is not kept."""
    address = begun()

    def overtake(meanwhile: httpx.Client) -> None:
        change(services, lease_until=now() - timedelta(seconds=1))
        sent(meanwhile, owner, address, b"rival")

    while_a_part_arrives(overtake)
    problem(send(client, owner, address, 0, b"abc"), 409, "state_conflict")
    assert offset_of(client, owner, address) == 5
    assert len(stored(services.areas)) == 1


def test_no_key_of_a_part_outlives_a_deletion_that_it_races(
    client: httpx.Client,
    services: Services,
    owner: rows.Key,
    dataset_id: str,
    begun: Callable[..., Address],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """W10: its process dies behind the key. The receipt says that all keys are destroyed, so this one is, too."""
    address, keep = begun(), WrappedKeys.keep_part
    entered, go_on = threading.Event(), threading.Event()

    def slow(keys: WrappedKeys, object_name: str, box: bytes) -> None:
        entered.set()
        assert go_on.wait(SETTLE_SECONDS)
        keep(keys, object_name, box)

    monkeypatch.setattr(WrappedKeys, "keep_part", slow)
    monkeypatch.setattr(parts.Part, "give_up", lambda _: None)
    with ThreadPoolExecutor(2) as pool:
        part = pool.submit(send, client, owner, address, 0, b"abc")
        assert entered.wait(SETTLE_SECONDS)
        deletion = pool.submit(client.delete, f"/v1/datasets/{dataset_id}", headers=owner.headers)
        futures.wait([deletion], 2)  # it waits for the part; if it did not, it would be through before the key is there
        go_on.set()
        assert deletion.result().status_code == 200
        assert part.result().status_code in {204, 409}, "kept before, or ended"
    assert [box for box in entries(services.areas.keys.store).values() if box] == []


@pytest.mark.parametrize("end", ["upload", "dataset"])
def test_what_ends_while_a_part_arrives_keeps_nothing_of_it(
    client: httpx.Client,
    services: Services,
    owner: rows.Key,
    dataset_id: str,
    begun: Callable[..., Address],
    while_a_part_arrives: Meanwhile,
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


def test_a_store_that_is_full_is_unavailable_and_the_upload_goes_on_later(
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
def test_a_full_disk_is_unavailable_and_leaves_nothing(
    client: httpx.Client, services: Services, owner: rows.Key, dataset_id: str, begun: Callable[..., Address], way: str
) -> None:
    """W10: no file may grow beyond what is left, as the operating system has it; nothing stays half-written."""
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
    """The process of a part is lost at that step, and gives nothing up."""

    def crash(*_: object) -> None:
        raise RuntimeError

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(parts.Part, "give_up", lambda _: None)
        patch.setattr(parts.Part, step, crash)
        yield


@pytest.mark.parametrize("moment", ["claimed", "published"])
def test_what_a_crashed_process_leaves_is_found(
    client: httpx.Client,
    services: Services,
    owner: rows.Key,
    begun: Callable[..., Address],
    moment: str,
) -> None:
    """W10: an object's name is durable before its first byte; the upload goes on once the lease has run out."""
    address = begun()

    with crashing("create_writer" if moment == "claimed" else "keep"):
        problem(send(client, owner, address, 0), 500, "internal")
    problem(send(client, owner, address, 0), 409, "state_conflict")
    change(services, lease_until=now() - timedelta(seconds=1))
    assert sent(client, owner, address, TABLE) == len(TABLE)
    change(services, expires_at=now() - timedelta(seconds=1))
    sweep(services)
    assert left(services) == ([], [], [])


def test_nothing_is_stored_behind_the_back_of_the_sweep(
    client: httpx.Client,
    services: Services,
    owner: rows.Key,
    begun: Callable[..., Address],
    while_a_part_arrives: Meanwhile,
) -> None:
    """W10: a part that stalls until its upload is swept away, and then arrives, in a store that takes it whole."""
    address = begun()

    def end(meanwhile: httpx.Client) -> None:
        change(services, lease_until=now() - timedelta(seconds=1))
        assert meanwhile.delete(address, headers=owner.headers).status_code == 204
        sweep(services)
        assert left(services) == ([], [], [])

    while_a_part_arrives(end)
    assert send(client, owner, address, 0, b"abc").status_code in {409, 503}
    assert left(services) == ([], [], [])


def test_what_is_completed_while_the_sweep_looks_is_not_swept(
    client: httpx.Client,
    services: Services,
    owner: rows.Key,
    begun: Callable[..., Address],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """W10: it expires while it is being completed, and becomes a content with all of its parts."""
    sent(client, owner, begun(), b"abc")
    objects, look = stored(services.areas), repository.select_lapsed

    def look_too_soon(*told: Any) -> Any:
        found = look(*told)
        with services.database.write() as tx:
            upload = tx.query(Upload).one()
            service.complete(tx, services, tx.get_one(Dataset, upload.dataset_id), upload)
        return found

    change(services, expires_at=now() - timedelta(seconds=1))
    with monkeypatch.context() as patch:
        patch.setattr(repository, "select_lapsed", look_too_soon)
        sweep(services)
    assert stored(services.areas) == objects


def test_a_request_that_died_does_not_count_for_a_day(
    client: httpx.Client, services: Services, owner: rows.Key
) -> None:
    """Nobody can complete or delete an upload that was one request, so it must not use up the owner's share of them."""

    address = f"/v1/datasets/{declared(client, owner)['id']}/content"
    with crashing("keep"):
        problem(client.put(address, content=TABLE, headers=owner.headers | CSV), 500, "internal")
    with services.database.read() as session:
        upload = session.query(Upload).one()
    assert upload.expires_at - upload.created_at < timedelta(hours=1)
    change(services, expires_at=now() - timedelta(seconds=1), lease_until=now() - timedelta(seconds=1))
    sweep(services)
    assert left(services) == ([], [], [])


def test_w3_nothing_of_a_part_or_a_digest_is_found_in_the_clear(
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


def test_w1_the_announced_digest_is_for_the_worker_alone(
    services: Services, owner: rows.Key, database: Database
) -> None:
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
