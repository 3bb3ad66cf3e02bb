"""``PUT /v1/datasets/{id}/content`` stores the whole body, sealed, or no byte of it."""

import base64
import hashlib
from collections.abc import Iterator
from typing import Any

import anyio
import httpx
import pytest
from fastapi import FastAPI
from starlette.types import Message

from app.datasets.models import Content
from app.datasets.uploads import announcements, endpoints, service
from app.datasets.uploads.parts import Part
from app.db import Database, now
from app.queue import INGEST_CONTENT
from app.services import Services
from app.vault.envelope import CHUNK_BYTES
from tests.factories import rows
from tests.factories.datasets import CSV, Check, declared, entries, everything, problem, stored, uploaded
from tests.factories.queue import RecordingQueue

CANARY = b"canary-41f2e6-row"
TABLE = b"age,hours,sex,income_gt_50k\n" + CANARY * 20


def digest(content: bytes) -> str:
    return f"sha-256=:{base64.b64encode(hashlib.sha256(content).digest()).decode()}:"


def put(client: httpx.Client, key: rows.Key, dataset_id: str, content: Any = TABLE, **headers: str) -> httpx.Response:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return client.put(f"/v1/datasets/{dataset_id}/content", content=content, headers=key.headers | CSV | named)


def test_a_complete_content_is_recorded_and_queued(
    client: httpx.Client, database: Database, queue: RecordingQueue, owner: rows.Key
) -> None:
    dataset = declared(client, owner)
    shown = uploaded(client, owner, dataset["id"], TABLE)
    assert (shown["status"], shown["content"]) == ("received", {"version": 1, "status": "received", "rejection": None})
    assert shown["content_received_at"] is not None
    with database.read() as session:
        content = session.query(Content).one()
    assert queue.sent == [(INGEST_CONTENT, content.id)]
    assert (content.media_type, content.attempts, content.lease_until) == ("text/csv", 0, None)


def test_a_later_content_is_the_next_version(client: httpx.Client, database: Database, owner: rows.Key) -> None:
    dataset = declared(client, owner)
    uploaded(client, owner, dataset["id"])
    with database.write() as tx:
        tx.query(Content).one().status = "ready"
    shown = uploaded(client, owner, dataset["id"])
    assert (shown["status"], shown["content"]["version"], shown["content"]["status"]) == ("ready", 2, "received")


def test_w3_no_body_is_stored_or_logged_as_plaintext(
    client: httpx.Client, services: Services, owner: rows.Key, capfd: pytest.CaptureFixture[str]
) -> None:
    """W3: no answer, log line, row, file or file name contains data of a table."""
    dataset = declared(client, owner)
    shown = put(client, owner, dataset["id"])
    refused = put(client, owner, dataset["id"], Content_Digest=digest(b"other"))
    tables, names = everything(services.database, services.areas)
    text = shown.text + refused.text + repr(tables) + repr(names) + "".join(capfd.readouterr())
    sealed = b"".join(entries(services.areas.incoming).values())
    for canary in (CANARY, hashlib.sha256(TABLE).digest()):
        assert canary not in sealed
    for secret in (CANARY.decode(), hashlib.sha256(TABLE).hexdigest(), digest(TABLE)):
        assert secret not in text


def test_a_body_with_the_right_digest_is_accepted(client: httpx.Client, owner: rows.Key) -> None:
    dataset = declared(client, owner)
    also = f"sha-512=:{base64.b64encode(bytes(64)).decode()}:, {digest(TABLE)}"
    assert put(client, owner, dataset["id"], Content_Digest=also).status_code == 202


@pytest.mark.parametrize(
    ("headers", "status", "code"),
    [
        ({"Content_Digest": digest(b"another body")}, 422, "digest_mismatch"),
        ({"Content_Digest": "sha-256=AAAA"}, 422, "invalid_request"),
        ({"Content_Digest": "sha-256=:AAAA:"}, 422, "invalid_request"),
        ({"Content_Digest": ""}, 422, "invalid_request"),
        ({"Content_Digest": f"sha-512=:{base64.b64encode(bytes(64)).decode()}:"}, 422, "invalid_request"),
        ({"Content_Range": "bytes 0-1/2"}, 422, "invalid_request"),
        ({"Content_Type": ""}, 415, "unsupported_media_type"),
        ({"Content_Type": "application/json"}, 415, "unsupported_media_type"),
        ({"Content_Type": "text/csv; charset=latin-1"}, 415, "unsupported_media_type"),
        ({"Content_Type": "text/csv; header=absent"}, 415, "unsupported_media_type"),
        ({"Content_Encoding": "gzip"}, 415, "unsupported_media_type"),
    ],
)
def test_a_refused_body_is_not_stored(
    client: httpx.Client, services: Services, owner: rows.Key, headers: dict[str, str], status: int, code: str
) -> None:
    dataset = declared(client, owner)
    before = everything(services.database, services.areas)
    refused = put(client, owner, dataset["id"], **headers)
    assert CANARY.decode() not in str(problem(refused, status, code))
    assert everything(services.database, services.areas) == before


@pytest.mark.parametrize(
    "media_type",
    ["application/gzip", "application/x-www-form-urlencoded", "multipart/form-data"],
)
def test_the_refusal_of_a_format_lists_the_accepted_ones(
    client: httpx.Client, owner: rows.Key, media_type: str
) -> None:
    refused = put(client, owner, declared(client, owner)["id"], Content_Type=media_type)
    detail = problem(refused, 415, "unsupported_media_type")["detail"]
    assert all(media_type in detail for media_type in announcements.MEDIA_TYPES)


@pytest.mark.parametrize(
    "media_type",
    ["text/csv; charset=UTF-8", 'Text/CSV; header="present"', announcements.PARQUET, announcements.ARROW],
)
def test_the_three_formats_are_accepted(client: httpx.Client, owner: rows.Key, media_type: str) -> None:
    dataset = declared(client, owner)
    assert put(client, owner, dataset["id"], Content_Type=media_type).status_code == 202


def test_a_body_beyond_the_limit_is_refused_with_or_without_length(
    client: httpx.Client, services: Services, owner: rows.Key
) -> None:
    dataset = declared(client, owner)
    before = everything(services.database, services.areas)
    piece = bytes(services.limits.upload_bytes // 2 + 1)

    def pieces() -> Iterator[bytes]:
        yield piece
        yield piece

    for body in (piece * 2, pieces()):
        problem(put(client, owner, dataset["id"], body), 413, "content_too_large")
        assert everything(services.database, services.areas) == before


def test_the_largest_body_and_the_empty_one_are_received(
    client: httpx.Client, services: Services, owner: rows.Key
) -> None:
    dataset = declared(client, owner)
    for body in (b"", bytes(services.limits.upload_bytes)):
        assert put(client, owner, dataset["id"], body).status_code == 202


def test_only_the_owner_uploads_a_content(client: httpx.Client, only_its_owner_may: Check) -> None:
    only_its_owner_may(lambda key, dataset_id: put(client, key, dataset_id))


def test_a_content_of_a_deleted_dataset_is_refused(client: httpx.Client, services: Services, owner: rows.Key) -> None:
    with services.database.write() as tx:
        dataset_id = rows.dataset(tx, owner.id, sensitivity="public", deleted_at=now()).id
    before = everything(services.database, services.areas)
    problem(put(client, owner, dataset_id), 409, "state_conflict")
    assert everything(services.database, services.areas) == before


def test_deleting_the_dataset_during_an_upload_stores_no_content(
    client: httpx.Client, services: Services, owner: rows.Key, monkeypatch: pytest.MonkeyPatch
) -> None:
    dataset = declared(client, owner)
    claim = endpoints._claim_whole

    def claim_then_delete(*arguments: Any) -> Part:
        part = claim(*arguments)
        assert client.delete(f"/v1/datasets/{dataset['id']}", headers=owner.headers).status_code == 200
        return part

    monkeypatch.setattr(endpoints, "_claim_whole", claim_then_delete)
    problem(put(client, owner, dataset["id"]), 409, "state_conflict")
    assert stored(services.areas) == []


def test_a_record_that_cannot_be_written_leaves_no_object(
    client: httpx.Client, services: Services, owner: rows.Key, monkeypatch: pytest.MonkeyPatch
) -> None:
    dataset = declared(client, owner)
    before = everything(services.database, services.areas)

    def fail(*_: object) -> None:
        raise RuntimeError("disk full")

    monkeypatch.setattr(service, "complete", fail)
    refused = problem(put(client, owner, dataset["id"]), 500, "internal")
    assert "disk full" not in str(refused)
    assert everything(services.database, services.areas) == before


def test_a_body_that_breaks_off_is_not_stored(
    application: FastAPI, client: httpx.Client, services: Services, owner: rows.Key
) -> None:
    dataset = declared(client, owner)
    before = everything(services.database, services.areas)
    arriving: Iterator[Message] = iter(
        [
            {"type": "http.request", "body": TABLE, "more_body": True},
            {"type": "http.request", "body": bytes(CHUNK_BYTES // 2), "more_body": True},
            {"type": "http.disconnect"},
        ]
    )

    async def receive() -> Message:
        return next(arriving)

    async def send(_: Message) -> None: ...

    headers = [(name.lower().encode(), value.encode()) for name, value in (owner.headers | CSV).items()]
    scope = {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": "PUT",
        "scheme": "http",
        "path": f"/v1/datasets/{dataset['id']}/content",
        "raw_path": b"",
        "query_string": b"",
        "root_path": "",
        "headers": headers,
        "server": ("corevault.test", 80),
        "client": ("127.0.0.1", 50_000),
    }
    anyio.run(application, scope, receive, send)
    assert everything(services.database, services.areas) == before
