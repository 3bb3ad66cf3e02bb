"""``/v1/datasets/{id}/uploads``: parts arrive in order and become a content."""

import dataclasses
import hashlib
import json
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any

import httpx
import pytest

from app.auth.models import ApiKey
from app.auth.seals import compute_seal
from app.auth.secrets import parse
from app.datasets.models import Content
from app.datasets.uploads.models import Upload, UploadPart
from app.db import Database, now
from app.http.requests.models import IdempotentAnswer
from app.main import create_app
from app.queue import INGEST_CONTENT
from app.services import Services
from tests.datasets.test_uploading import digest
from tests.factories import rows
from tests.factories.datasets import Check, declared, everything, problem, stored
from tests.factories.queue import RecordingQueue
from tests.factories.transport import AppTransport
from tests.factories.uploads import TABLE, Address, change, complete, left, offset_of, refused, send, sent, sweep


def test_parts_become_one_content(
    client: httpx.Client, database: Database, queue: RecordingQueue, owner: rows.Key, begun: Callable[..., Address]
) -> None:
    address = begun(length=len(TABLE), digest=digest(TABLE))
    assert sent(client, owner, address, TABLE[:10], TABLE[10:11], TABLE[11:]) == len(TABLE)
    answer = complete(client, owner, address)
    assert answer.status_code == 202
    assert answer.json()["content"] == {"version": 1, "status": "received", "rejection": None}
    with database.read() as session:
        content = session.query(Content).one()
    assert (content.media_type, content.parts) == ("text/csv", 3)
    assert queue.sent == [(INGEST_CONTENT, content.id)]


def test_an_upload_shows_its_properties(client: httpx.Client, owner: rows.Key, begun: Callable[..., Address]) -> None:
    address = begun(length=7)
    shown = client.get(address, headers=owner.headers)
    body = shown.json()
    assert (body["media_type"], body["length"], body["offset"]) == ("text/csv", 7, 0)
    assert address.endswith(body["id"])
    assert shown.headers["upload-length"] == "7"
    assert client.head(begun(), headers=owner.headers).headers.get("upload-length") is None


def test_completion_is_idempotent(
    client: httpx.Client, database: Database, queue: RecordingQueue, owner: rows.Key, begun: Callable[..., Address]
) -> None:
    """W10: a client that lost the answer repeats the call, with an idempotency key or without."""
    address = begun()
    sent(client, owner, address, TABLE)
    answers = [complete(client, owner, address, **headers) for headers in ({}, {}, {"Idempotency-Key": "k"})]
    answers.append(complete(client, owner, address, **{"Idempotency-Key": "k"}))
    assert [answer.status_code for answer in answers] == [202] * 4
    assert len(queue.sent) == 1
    with database.read() as session:
        assert session.query(Content).count() == 1
    problem(send(client, owner, address, len(TABLE)), 409, "state_conflict")
    problem(client.delete(address, headers=owner.headers), 409, "state_conflict")
    assert offset_of(client, owner, address) == len(TABLE)


def test_creation_under_one_key_is_idempotent(
    client: httpx.Client, database: Database, owner: rows.Key, dataset_id: str
) -> None:
    def begin(media_type: str) -> httpx.Response:
        headers = owner.headers | {"Idempotency-Key": "k"}
        return client.post(f"/v1/datasets/{dataset_id}/uploads", json={"media_type": media_type}, headers=headers)

    assert begin("text/csv").headers["location"] == begin("text/csv").headers["location"]
    problem(begin("application/vnd.apache.parquet"), 409, "idempotency_conflict")
    with database.read() as session:
        assert session.query(Upload).count() == 1


def test_w3_the_recorded_hash_of_a_body_needs_a_key(
    client: httpx.Client, database: Database, services: Services, owner: rows.Key, dataset_id: str
) -> None:
    """W3: the body may contain the digest of a table. The key of its hash is not in the database."""
    body = {"media_type": "text/csv", "digest": digest(TABLE)}
    path, headers = f"/v1/datasets/{dataset_id}/uploads", owner.headers | {"Idempotency-Key": "k"}
    assert client.post(path, json=body, headers=headers).status_code == 201
    with database.read() as session:
        recorded = session.query(IdempotentAnswer).one()
    canonical = json.dumps(body, sort_keys=True, separators=(",", ":")).encode()
    assert recorded.body_hash != hashlib.sha256(canonical).hexdigest()
    rekeyed = create_app(dataclasses.replace(services, identity_key=bytes(32)), metrics=False)
    with database.write() as tx:
        secret = parse(owner.secret)
        assert secret is not None
        row = tx.query(ApiKey).filter_by(id=owner.id).one()
        row.secret_hash = secret.keyed_hash(bytes(32))
        row.seal = compute_seal(bytes(32), row)
    with httpx.Client(transport=AppTransport(rekeyed), base_url="http://corevault.test") as other:
        problem(other.post(path, json=body, headers=headers), 409, "idempotency_conflict")


def test_a_part_at_another_offset_is_refused(
    client: httpx.Client, services: Services, owner: rows.Key, begun: Callable[..., Address]
) -> None:
    address = begun()
    sent(client, owner, address, b"abc")
    before = everything(services.database, services.areas)
    for offset in (0, 2, 4, 10**17):
        answer = send(client, owner, address, offset)
        assert problem(answer, 409, "offset_mismatch")["offset"] == 3
        assert answer.headers["upload-offset"] == "3"
    assert everything(services.database, services.areas) == before


@pytest.mark.parametrize("offset", ["", "-1", "+3", "3.0", "0x3", "٣", "9" * 30, "3, 3", " "])
def test_an_offset_that_is_not_a_whole_number_is_refused(
    client: httpx.Client, owner: rows.Key, begun: Callable[..., Address], offset: str
) -> None:
    headers = [*owner.headers.items(), ("Upload-Offset", offset.encode())]
    problem(client.patch(begun(), content=b"x", headers=headers), 422, "invalid_request")  # type: ignore[arg-type]


def test_a_missing_or_repeated_offset_is_refused(
    client: httpx.Client, owner: rows.Key, begun: Callable[..., Address]
) -> None:
    address = begun()
    problem(client.patch(address, content=b"x", headers=owner.headers), 422, "invalid_request")
    twice = [*owner.headers.items(), ("Upload-Offset", "0"), ("Upload-Offset", "0")]
    problem(client.patch(address, content=b"x", headers=twice), 422, "invalid_request")


@pytest.mark.parametrize(
    ("headers", "status", "code"),
    [
        ({"Content_Digest": digest(b"another part")}, 422, "digest_mismatch"),
        ({"Content_Digest": "sha-256=:AAAA:"}, 422, "invalid_request"),
        ({"Content_Encoding": "gzip"}, 415, "unsupported_media_type"),
        ({"Content_Range": "bytes 3-4/5"}, 422, "invalid_request"),
    ],
)
def test_a_refused_part_is_not_stored(
    client: httpx.Client,
    services: Services,
    owner: rows.Key,
    begun: Callable[..., Address],
    headers: dict[str, str],
    status: int,
    code: str,
) -> None:
    address = begun()
    sent(client, owner, address, b"abc")
    before = stored(services.areas)
    problem(send(client, owner, address, 3, **headers), status, code)
    assert stored(services.areas) == before
    assert sent(client, owner, address, TABLE) == 3 + len(TABLE)  # the refused part released its lease


def test_a_part_with_the_right_digest_is_accepted(
    client: httpx.Client, owner: rows.Key, begun: Callable[..., Address]
) -> None:
    assert send(client, owner, begun(), 0, TABLE, Content_Digest=digest(TABLE)).status_code == 204


def test_an_empty_part_changes_nothing(
    client: httpx.Client, services: Services, owner: rows.Key, begun: Callable[..., Address]
) -> None:
    address = begun()
    sent(client, owner, address, b"abc")
    before = stored(services.areas)
    assert sent(client, owner, address, b"", b"") == 3
    assert stored(services.areas) == before


def test_a_part_beyond_the_length_or_the_limit_is_refused(
    client: httpx.Client, services: Services, owner: rows.Key, begun: Callable[..., Address]
) -> None:
    def streamed(size: int) -> Iterator[bytes]:
        yield bytes(size)

    announced, unknown = begun(length=5), begun()
    sent(client, owner, announced, b"abc")
    half = services.limits.upload_bytes // 2 + 1
    sent(client, owner, unknown, bytes(half))
    before = stored(services.areas)
    for body in (b"def", streamed(3)):
        problem(send(client, owner, announced, 3, body), 413, "content_too_large")
    for body in (bytes(half), streamed(half)):
        problem(send(client, owner, unknown, half, body), 413, "content_too_large")
    assert stored(services.areas) == before
    assert sent(client, owner, announced, b"de") == 5


def test_parts_too_large_or_too_many_are_refused(services: Services, owner: rows.Key) -> None:
    limits = dataclasses.replace(services.limits, part_bytes=4, parts=2)
    app = create_app(dataclasses.replace(services, limits=limits), metrics=False)
    with httpx.Client(transport=AppTransport(app), base_url="http://corevault.test") as client:
        created = client.post(
            f"/v1/datasets/{declared(client, owner)['id']}/uploads",
            json={"media_type": "text/csv"},
            headers=owner.headers,
        )
        assert created.json()["max_part_bytes"] == 4
        address = created.headers["location"]
        problem(send(client, owner, address, 0, b"12345"), 413, "content_too_large")
        sent(client, owner, address, b"1234", b"1234")
        problem(send(client, owner, address, 8, b"1"), 413, "content_too_large")


@pytest.mark.parametrize(
    ("announced", "status", "code"),
    [
        ({"media_type": "application/json"}, 415, "unsupported_media_type"),
        ({"media_type": "text/csv; charset=latin-1"}, 415, "unsupported_media_type"),
        ({"media_type": ""}, 415, "unsupported_media_type"),
        ({"media_type": 3}, 422, "invalid_request"),
        ({}, 422, "invalid_request"),
        ({"length": -1}, 422, "invalid_request"),
        ({"length": "3"}, 422, "invalid_request"),
        ({"length": 2**20 + 1}, 413, "content_too_large"),
        ({"length": 2**52}, 413, "content_too_large"),
        ({"digest": "sha-256=:AAAA:"}, 422, "invalid_request"),
        ({"digest": "0" * 64}, 422, "invalid_request"),
        ({"rows": 3}, 422, "invalid_request"),
    ],
)
def test_an_invalid_creation_is_refused(
    client: httpx.Client,
    services: Services,
    owner: rows.Key,
    dataset_id: str,
    announced: dict[str, Any],
    status: int,
    code: str,
) -> None:
    before = everything(services.database, services.areas)
    body = announced if announced in ({}, {"media_type": ""}) else {"media_type": "text/csv"} | announced
    answer = client.post(f"/v1/datasets/{dataset_id}/uploads", json=body, headers=owner.headers)
    assert "AAAA" not in str(problem(answer, status, code))
    assert everything(services.database, services.areas) == before


def test_completion_before_the_last_byte_is_refused(
    client: httpx.Client, services: Services, owner: rows.Key, begun: Callable[..., Address]
) -> None:
    address = begun(length=5)
    sent(client, owner, address, b"abc")
    answer = complete(client, owner, address)
    assert problem(answer, 409, "offset_mismatch")["offset"] == 3
    assert answer.headers["upload-offset"] == "3"
    sent(client, owner, address, b"de")
    assert complete(client, owner, address).status_code == 202


def test_a_deleted_upload_is_swept(
    client: httpx.Client, services: Services, owner: rows.Key, dataset_id: str, begun: Callable[..., Address]
) -> None:
    address = begun()
    sent(client, owner, address, b"abc", b"def")
    assert client.delete(address, headers=owner.headers).status_code == 204
    refused(client, owner, address, 6, 404, "not_found")
    sweep(services)
    assert left(services) == ([], [], [])


def test_an_upload_expires_after_a_day(
    client: httpx.Client, services: Services, owner: rows.Key, begun: Callable[..., Address]
) -> None:
    address = begun()
    sent(client, owner, address, b"abc")
    with services.database.read() as session:
        upload = session.query(Upload).one()
    assert upload.expires_at - upload.created_at == timedelta(hours=24)
    sweep(services)
    assert offset_of(client, owner, address) == 3
    change(services, expires_at=now() - timedelta(seconds=1))
    problem(send(client, owner, address, 3), 404, "not_found")
    sweep(services)
    assert left(services) == ([], [], [])


def test_parts_of_a_content_outlive_their_upload(
    client: httpx.Client, services: Services, owner: rows.Key, begun: Callable[..., Address]
) -> None:
    address = begun()
    sent(client, owner, address, b"abc", b"def")
    complete(client, owner, address)
    objects = stored(services.areas)
    change(services, expires_at=now() - timedelta(seconds=1))
    sweep(services)
    assert stored(services.areas) == objects
    with services.database.read() as session:
        assert (session.query(Upload).count(), session.query(UploadPart).count()) == (0, 2)


def test_deleting_a_dataset_ends_its_uploads(
    client: httpx.Client, services: Services, owner: rows.Key, dataset_id: str, begun: Callable[..., Address]
) -> None:
    address, whole = begun(), begun()
    sent(client, owner, address, b"abc")
    sent(client, owner, whole, b"abc")
    complete(client, owner, whole)
    assert client.delete(f"/v1/datasets/{dataset_id}", headers=owner.headers).status_code == 200
    assert stored(services.areas) == []
    problem(send(client, owner, address, 3), 409, "state_conflict")
    sweep(services)
    with services.database.read() as session:
        assert session.query(Upload).filter_by(status="open").count() == 0


def test_too_many_open_uploads_are_refused_with_their_ids(
    client: httpx.Client, services: Services, owner: rows.Key, dataset_id: str, begun: Callable[..., Address]
) -> None:
    addresses = [begun() for _ in range(services.limits.open_uploads)]
    path, body = f"/v1/datasets/{dataset_id}/uploads", {"media_type": "text/csv"}
    ids = [address.rpartition("/")[2] for address in addresses]
    refusal = problem(client.post(path, json=body, headers=owner.headers), 409, "state_conflict")
    assert refusal["uploads"] == ids[::-1]
    assert client.delete(f"{path}/{refusal['uploads'][0]}", headers=owner.headers).status_code == 204
    assert client.post(path, json=body, headers=owner.headers).status_code == 201


def test_w3_the_refusal_lists_only_the_callers_uploads(
    client: httpx.Client, services: Services, owner: rows.Key, begun: Callable[..., Address], database: Database
) -> None:
    """W3: uploads to all datasets of the caller, but not uploads to datasets of other owners."""
    mine = [begun().rpartition("/")[2] for _ in range(services.limits.open_uploads - 1)]
    body, second = {"media_type": "text/csv"}, f"/v1/datasets/{declared(client, owner)['id']}/uploads"
    mine.append(client.post(second, json=body, headers=owner.headers).json()["id"])
    with database.write() as tx:
        other = rows.api_key(tx, "owner")
    theirs = f"/v1/datasets/{declared(client, other)['id']}/uploads"
    assert client.post(theirs, json=body, headers=other.headers).status_code == 201
    refusal = problem(client.post(second, json=body, headers=owner.headers), 409, "state_conflict")
    assert sorted(refusal["uploads"]) == sorted(mine)


def test_open_uploads_are_listed_newest_first(
    client: httpx.Client, database: Database, owner: rows.Key, dataset_id: str, begun: Callable[..., Address]
) -> None:
    """A client that lost the ids finds them. Complete, ended and expired uploads are not listed."""
    addresses = [begun() for _ in range(6)]
    shown = [client.get(address, headers=owner.headers).json() for address in addresses]
    sent(client, owner, addresses[0], TABLE)
    complete(client, owner, addresses[0])
    assert client.delete(addresses[1], headers=owner.headers).status_code == 204
    with database.write() as tx:
        tx.get_one(Upload, addresses[2].rpartition("/")[2]).expires_at = now() - timedelta(seconds=1)
    path = f"/v1/datasets/{dataset_id}/uploads"
    assert client.get(path, headers=owner.headers).json() == {"items": shown[:2:-1], "next_cursor": None}
    first = client.get(f"{path}?limit=2", headers=owner.headers).json()
    rest = client.get(f"{path}?limit=2&cursor={first['next_cursor']}", headers=owner.headers).json()
    assert (first["items"], rest) == (shown[:3:-1], {"items": [shown[3]], "next_cursor": None})
    empty = f"/v1/datasets/{declared(client, owner)['id']}/uploads"
    assert client.get(empty, headers=owner.headers).json() == {"items": [], "next_cursor": None}


def test_only_the_owner_lists_uploads(client: httpx.Client, only_its_owner_may: Check) -> None:
    only_its_owner_may(lambda key, dataset_id: client.get(f"/v1/datasets/{dataset_id}/uploads", headers=key.headers))


def test_only_the_owner_calls_upload_addresses(
    client: httpx.Client, begun: Callable[..., Address], only_its_owner_may: Check
) -> None:
    elsewhere = begun().rpartition("/")[2]
    calls: tuple[Callable[[rows.Key, str], httpx.Response], ...] = (
        lambda key, place: client.post(place, json={"media_type": "text/csv"}, headers=key.headers),
        lambda key, place: client.get(f"{place}/{elsewhere}", headers=key.headers),
        lambda key, place: client.patch(f"{place}/{elsewhere}", content=b"x", headers=key.headers),
        lambda key, place: client.delete(f"{place}/{elsewhere}", headers=key.headers),
        lambda key, place: client.post(f"{place}/{elsewhere}/complete", headers=key.headers),
    )
    for call in calls:
        only_its_owner_may(lambda key, dataset_id, call=call: call(key, f"/v1/datasets/{dataset_id}/uploads"))  # type: ignore[misc]


def test_an_upload_at_another_dataset_is_not_found(
    client: httpx.Client, owner: rows.Key, begun: Callable[..., Address]
) -> None:
    upload_id, other = begun().rpartition("/")[2], declared(client, owner)["id"]
    address = f"/v1/datasets/{other}/uploads/{upload_id}"
    refused(client, owner, address, 0, 404, "not_found")
