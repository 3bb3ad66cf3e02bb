"""The tus protocol 1.0.0 at the addresses of uploads, as its clients follow it."""

import base64
from collections.abc import AsyncIterator, Callable
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

import anyio
import httpx
import pytest
from fastapi import FastAPI
from starlette.types import Message

from app.audit.models import AuditEntry
from app.datasets.models import Content
from app.datasets.uploads.models import Upload
from app.db import Database
from app.http.requests.models import IdempotentAnswer
from app.services import Services
from tests.factories import rows
from tests.factories.datasets import everything, problem, stored
from tests.factories.uploads import TABLE, Address, complete, offset_of, send, sent

TUS = {"Tus-Resumable": "1.0.0"}
CSV = "filetype dGV4dC9jc3Y="
PART = "application/offset+octet-stream"


def encode(value: str | bytes) -> str:
    return base64.b64encode(value.encode() if isinstance(value, str) else value).decode()


def create(client: httpx.Client, key: rows.Key, dataset_id: str, *more: tuple[str, str]) -> httpx.Response:
    """Create an upload as a tus client does: by headers, without a body."""
    headers = [*key.headers.items(), *TUS.items(), *more]
    return client.post(f"/v1/datasets/{dataset_id}/uploads", headers=headers)


def send_part(
    client: httpx.Client, key: rows.Key, address: Address, offset: int, body: bytes, **more: str
) -> httpx.Response:
    return send(client, key, address, offset, body, **{"Tus-Resumable": "1.0.0", "Content-Type": PART} | more)


@pytest.fixture
def created(client: httpx.Client, owner: rows.Key, dataset_id: str) -> Callable[..., Address]:
    """Create an upload of a CSV file with these headers; its address."""

    def begin(**headers: str) -> Address:
        more = [("Upload-Metadata", CSV), *((name.replace("_", "-"), value) for name, value in headers.items())]
        answer = create(client, owner, dataset_id, *more)
        assert answer.status_code == 201, answer.text
        return answer.headers["location"]

    return begin


def test_a_file_is_uploaded_by_the_protocol(
    client: httpx.Client, database: Database, owner: rows.Key, dataset_id: str
) -> None:
    """The steps of a client: features, creation, offset, parts. The last step, complete, is of this API."""
    server = client.options(f"/v1/datasets/{dataset_id}/uploads")
    assert "creation" in server.headers["tus-extension"].split(",")
    assert int(server.headers["tus-max-size"]) > len(TABLE)
    answer = create(client, owner, dataset_id, ("Upload-Length", str(len(TABLE))), ("Upload-Metadata", CSV))
    assert (answer.status_code, answer.headers["tus-resumable"]) == (201, "1.0.0")
    address = answer.headers["location"]
    for begin, end in [(0, 100), (100, len(TABLE))]:
        head = client.head(address, headers=owner.headers | TUS)
        assert (head.status_code, head.content) == (200, b"")
        assert head.headers["upload-offset"] == str(begin)
        assert (head.headers["upload-length"], head.headers["cache-control"]) == (str(len(TABLE)), "no-store")
        part = send_part(client, owner, address, begin, TABLE[begin:end])
        assert (part.status_code, part.content) == (204, b"")
        assert (part.headers["upload-offset"], part.headers["tus-resumable"]) == (str(end), "1.0.0")
    assert complete(client, owner, address).status_code == 202
    with database.read() as session:
        content = session.query(Content).one()
    assert (content.media_type, content.parts) == ("text/csv", 2)


@pytest.mark.parametrize("version", [None, "1.0.0", "0.2.2"])
def test_options_state_what_the_server_supports(
    client: httpx.Client, services: Services, begun: Callable[..., Address], version: str | None
) -> None:
    """No key is needed, and the version in the request is ignored."""
    address = begun()
    methods = {address: "DELETE, GET, HEAD, OPTIONS, PATCH", address.rpartition("/")[0]: "GET, HEAD, OPTIONS, POST"}
    for place, allowed in methods.items():
        answer = client.options(place, headers={} if version is None else {"Tus-Resumable": version})
        assert (answer.status_code, answer.content, answer.headers["allow"]) == (204, b"", allowed)
        assert answer.headers["tus-resumable"] == answer.headers["tus-version"] == "1.0.0"
        assert answer.headers["tus-extension"] == "creation,creation-defer-length,expiration,termination"
        assert answer.headers["tus-max-size"] == str(services.limits.upload_bytes)
        assert not [name for name in answer.headers if name.startswith("access-control")]


def test_options_do_not_reveal_which_uploads_exist(client: httpx.Client, begun: Callable[..., Address]) -> None:
    """W3"""
    shown = {
        str({name: value for name, value in client.options(address).headers.items() if name != "x-request-id"})
        for address in (begun(), "/v1/datasets/ds_none/uploads/up_none")
    }
    assert len(shown) == 1


@pytest.mark.parametrize("version", ["0.2.2", "1.0.1", "2.0.0", "", "1.0.0, 1.0.0"])
def test_another_version_is_refused_and_nothing_done(
    client: httpx.Client,
    services: Services,
    owner: rows.Key,
    dataset_id: str,
    begun: Callable[..., Address],
    version: str,
) -> None:
    address, place = begun(), f"/v1/datasets/{dataset_id}/uploads"
    before = everything(services.database, services.areas)
    headers = owner.headers | {"Tus-Resumable": version, "Upload-Offset": "0", "Content-Type": PART}
    for method, target in [("POST", place), ("PATCH", address), ("DELETE", address), ("GET", address)]:
        content = b"abc" if method == "PATCH" else None
        answer = client.request(method, target, headers=headers, content=content)
        problem(answer, 412, "precondition_failed")
        assert answer.headers["tus-version"] == answer.headers["tus-resumable"] == "1.0.0"
    assert client.head(address, headers=headers).status_code == 412
    tables, objects = everything(services.database, services.areas)
    unchanged = {name: lines for name, lines in tables.items() if name != AuditEntry.__tablename__}
    assert (unchanged, objects) == (
        {name: lines for name, lines in before[0].items() if name != AuditEntry.__tablename__},
        before[1],
    )


def test_every_answer_states_the_version(client: httpx.Client, owner: rows.Key, begun: Callable[..., Address]) -> None:
    """Refusals and answers to other clients included."""
    address = begun()
    nobody, somebody = client.get(address), client.get(address, headers=owner.headers)
    gone = client.head(f"{address}x", headers=owner.headers | TUS)
    assert [answer.status_code for answer in (nobody, somebody, gone)] == [401, 200, 404]
    assert {answer.headers["tus-resumable"] for answer in (nobody, somebody, gone)} == {"1.0.0"}
    assert "upload-offset" not in gone.headers


def test_clients_without_tus_need_none_of_its_headers(
    client: httpx.Client, owner: rows.Key, dataset_id: str, begun: Callable[..., Address]
) -> None:
    """Parts may have any media type, and a creation needs its body."""
    for media_type in ("text/csv", "application/octet-stream", PART):
        assert send(client, owner, begun(), 0, Content_Type=media_type).status_code == 204
    answer = client.post(
        f"/v1/datasets/{dataset_id}/uploads",
        headers=owner.headers | {"Upload-Length": "3", "Upload-Metadata": CSV},
    )
    assert problem(answer, 422, "invalid_request")["errors"] == [{"pointer": "", "message": "Send a JSON body."}]


def test_a_json_body_decides_also_for_tus_clients(client: httpx.Client, owner: rows.Key, dataset_id: str) -> None:
    body = {"media_type": "application/vnd.apache.parquet", "length": 7}
    headers = owner.headers | TUS | {"Upload-Length": "9", "Upload-Metadata": CSV}
    answer = client.post(f"/v1/datasets/{dataset_id}/uploads", json=body, headers=headers)
    assert answer.status_code == 201
    assert {name: answer.json()[name] for name in body} == body


@pytest.mark.parametrize("media_type", [None, "text/csv", "application/octet-stream", f"{PART}; charset=utf-8"])
def test_a_tus_part_has_the_media_type_of_the_protocol(
    client: httpx.Client, services: Services, owner: rows.Key, begun: Callable[..., Address], media_type: str | None
) -> None:
    address, before = begun(), stored(services.areas)
    more = {} if media_type is None else {"Content-Type": media_type}
    answer = send(client, owner, address, 0, **{"Tus-Resumable": "1.0.0"} | more)
    problem(answer, 415, "unsupported_media_type")
    assert stored(services.areas) == before
    assert offset_of(client, owner, address) == 0


def test_a_tus_part_at_another_offset_is_refused(
    client: httpx.Client, owner: rows.Key, created: Callable[..., Address]
) -> None:
    address = created(Upload_Length="6")
    assert send_part(client, owner, address, 0, b"abc").status_code == 204
    answer = send_part(client, owner, address, 0, b"abc")
    assert problem(answer, 409, "offset_mismatch")["offset"] == 3
    assert offset_of(client, owner, address) == 3


@pytest.mark.parametrize(
    ("metadata", "media_type"),
    [
        (CSV, "text/csv"),
        (f"filename {encode('geheim.PARQUET')}", "application/vnd.apache.parquet"),
        (f"filename {encode('a.csv.arrows')},filetype", "application/vnd.apache.arrow.stream"),
        (f"filename {encode('ä.csv')}, filetype {encode('application/octet-stream')}", "text/csv"),
        (f"name {encode(bytes(range(256)))},empty ,{CSV}", "text/csv"),
        (f"filename {encode('x.csv')},filetype {encode('application/vnd.apache.parquet')}", None),
    ],
)
def test_metadata_name_the_format(
    client: httpx.Client, owner: rows.Key, dataset_id: str, metadata: str, media_type: str | None
) -> None:
    """Of both keys the media type decides; other keys are ignored."""
    answer = create(client, owner, dataset_id, ("Upload-Length", "7"), ("Upload-Metadata", metadata))
    assert answer.status_code == 201, answer.text
    expected = media_type or "application/vnd.apache.parquet"
    assert (answer.json()["media_type"], answer.json()["length"]) == (expected, 7)
    head = client.head(answer.headers["location"], headers=owner.headers | TUS)
    assert head.headers["upload-metadata"] == f"filetype {encode(expected)}"


def test_w3_no_file_name_is_stored(client: httpx.Client, services: Services, owner: rows.Key, dataset_id: str) -> None:
    """A file name may name a person."""
    name = "canary-person.csv"
    metadata = ("Upload-Metadata", f"filename {encode(name)}")
    answer = create(client, owner, dataset_id, ("Upload-Length", "7"), metadata, ("Idempotency-Key", "k"))
    assert answer.status_code == 201
    text = repr(everything(services.database, services.areas)) + answer.text + str(answer.headers)
    assert "canary" not in text
    assert encode(name) not in text


@pytest.mark.parametrize(
    ("headers", "status", "code", "pointer"),
    [
        ([("Upload-Metadata", CSV)], 422, "invalid_request", "/header/upload-length"),
        ([("Upload-Length", "-1")], 422, "invalid_request", "/header/upload-length"),
        ([("Upload-Length", "1.5")], 422, "invalid_request", "/header/upload-length"),
        ([("Upload-Length", "9" * 30)], 422, "invalid_request", "/header/upload-length"),
        ([("Upload-Length", "3"), ("Upload-Length", "3")], 422, "invalid_request", "/header/upload-length"),
        ([("Upload-Length", "3"), ("Upload-Defer-Length", "1")], 422, "invalid_request", "/header/upload-length"),
        ([("Upload-Defer-Length", "0")], 422, "invalid_request", "/header/upload-defer-length"),
        ([("Upload-Length", "3"), ("Upload-Concat", "partial")], 422, "invalid_request", "/header/upload-concat"),
        ([("Upload-Length", str(2**20 + 1)), ("Upload-Metadata", CSV)], 413, "content_too_large", None),
        ([("Upload-Length", "3")], 415, "unsupported_media_type", None),
        ([("Upload-Length", "3"), ("Upload-Metadata", "")], 415, "unsupported_media_type", None),
        ([("Upload-Length", "3"), ("Upload-Metadata", "filename eC5qc29u")], 415, "unsupported_media_type", None),
        (
            [("Upload-Length", "3"), ("Upload-Metadata", f"{CSV},{CSV}")],
            422,
            "invalid_request",
            "/header/upload-metadata",
        ),
        (
            [("Upload-Length", "3"), ("Upload-Metadata", "filetype text/csv")],
            422,
            "invalid_request",
            "/header/upload-metadata",
        ),
        (
            [("Upload-Length", "3"), ("Upload-Metadata", "filetype dGV4dC9jc3Y")],
            422,
            "invalid_request",
            "/header/upload-metadata",
        ),
        ([("Upload-Length", "3"), ("Upload-Metadata", f"{CSV},")], 422, "invalid_request", "/header/upload-metadata"),
        (
            [("Upload-Length", "3"), ("Upload-Metadata", "filetype  dGV4dC9jc3Y=")],
            422,
            "invalid_request",
            "/header/upload-metadata",
        ),
        (
            [("Upload-Length", "3"), ("Upload-Metadata", "filename /w==")],
            422,
            "invalid_request",
            "/header/upload-metadata",
        ),
    ],
)
def test_headers_of_a_creation_are_checked(
    client: httpx.Client,
    services: Services,
    owner: rows.Key,
    dataset_id: str,
    headers: list[tuple[str, str]],
    status: int,
    code: str,
    pointer: str | None,
) -> None:
    before = everything(services.database, services.areas)
    found = problem(create(client, owner, dataset_id, *headers), status, code)
    assert [fault["pointer"] for fault in found.get("errors", [])] == ([] if pointer is None else [pointer])
    assert everything(services.database, services.areas) == before


def test_malformed_headers_without_a_key_are_unauthenticated(client: httpx.Client, dataset_id: str) -> None:
    answer = client.post(f"/v1/datasets/{dataset_id}/uploads", headers=TUS | {"Upload-Length": "x"})
    problem(answer, 401, "unauthenticated")


def test_bytes_in_a_creation_request_are_refused(client: httpx.Client, owner: rows.Key, dataset_id: str) -> None:
    """The extension creation-with-upload is not offered."""
    headers = owner.headers | TUS | {"Upload-Length": "3", "Upload-Metadata": CSV, "Content-Type": PART}
    answer = client.post(f"/v1/datasets/{dataset_id}/uploads", headers=headers, content=b"abc")
    problem(answer, 415, "unsupported_media_type")


def test_a_creation_is_repeated_under_its_idempotency_key(
    client: httpx.Client, database: Database, owner: rows.Key, dataset_id: str
) -> None:
    """W10: the headers belong to the request as a body does."""
    key = ("Idempotency-Key", "k")
    first, again, other = (
        create(client, owner, dataset_id, ("Upload-Length", length), ("Upload-Metadata", CSV), key)
        for length in ("3", "3", "4")
    )
    assert first.headers["location"] == again.headers["location"]
    problem(other, 409, "idempotency_conflict")
    with database.read() as session:
        assert (session.query(Upload).count(), session.query(IdempotentAnswer).count()) == (1, 1)


def test_a_deferred_length_is_set_once_by_a_part(
    client: httpx.Client, owner: rows.Key, created: Callable[..., Address]
) -> None:
    address = created(Upload_Defer_Length="1")
    assert send_part(client, owner, address, 0, b"abc").status_code == 204
    head = client.head(address, headers=owner.headers | TUS).headers
    assert (head.get("upload-defer-length"), head.get("upload-length")) == ("1", None)
    for length, status in [("2", 422), (str(2**20 + 1), 413), ("x", 422), ("5", 204), ("5", 204), ("6", 422)]:
        body = b"d" if length == "5" else b""
        part = send_part(client, owner, address, offset_of(client, owner, address), body, **{"Upload-Length": length})
        assert part.status_code == status, length
    head = client.head(address, headers=owner.headers | TUS).headers
    assert (head.get("upload-defer-length"), head.get("upload-length"), head["upload-offset"]) == (None, "5", "5")
    problem(send_part(client, owner, address, 5, b"f"), 413, "content_too_large")
    assert complete(client, owner, address).status_code == 202


def test_a_length_is_not_set_by_clients_without_tus(
    client: httpx.Client, owner: rows.Key, begun: Callable[..., Address]
) -> None:
    address = begun()
    assert send(client, owner, address, 0, b"abc", Upload_Length="3").status_code == 204
    assert sent(client, owner, address, b"def") == 6


def test_answers_state_when_an_upload_expires(
    client: httpx.Client, database: Database, owner: rows.Key, dataset_id: str
) -> None:
    answer = create(client, owner, dataset_id, ("Upload-Length", "6"), ("Upload-Metadata", CSV))
    address = answer.headers["location"]
    head = client.head(address, headers=owner.headers | TUS)
    parts = [send_part(client, owner, address, 0, body) for body in (b"", b"abc")]
    with database.read() as session:
        expires_at = session.query(Upload).one().expires_at
    for shown in (answer, head, *parts):
        header = shown.headers["upload-expires"]
        assert header.endswith(" GMT")
        assert parsedate_to_datetime(header).astimezone(UTC) == expires_at.astimezone(UTC).replace(microsecond=0)
        assert parsedate_to_datetime(header) > datetime.now(UTC)


def test_an_upload_with_all_bytes_is_terminated(
    client: httpx.Client, owner: rows.Key, created: Callable[..., Address]
) -> None:
    """DELETE works at any time before the call of complete."""
    for size in (0, 3):
        address = created(Upload_Length="3")
        assert send_part(client, owner, address, 0, b"abc"[:size]).status_code == 204
        deleted = client.delete(address, headers=owner.headers | TUS)
        assert (deleted.status_code, deleted.headers["tus-resumable"]) == (204, "1.0.0")
        assert client.head(address, headers=owner.headers | TUS).status_code == 404
        problem(send_part(client, owner, address, size, b""), 404, "not_found")


def test_a_checksum_is_refused_instead_of_ignored(
    client: httpx.Client, services: Services, owner: rows.Key, created: Callable[..., Address]
) -> None:
    address, before = created(Upload_Length="3"), stored(services.areas)
    answer = send_part(client, owner, address, 0, b"abc", **{"Upload-Checksum": "sha1 qZk+NkcGgWq6PiVxeFDCbJzQ2J0="})
    problem(answer, 422, "invalid_request")
    assert stored(services.areas) == before


def test_the_method_of_a_post_can_be_overridden(
    client: httpx.Client, database: Database, owner: rows.Key, created: Callable[..., Address]
) -> None:
    """For environments without PATCH and DELETE. The audit log has the method that took effect."""
    address = created(Upload_Length="3")
    headers = owner.headers | TUS | {"Upload-Offset": "0", "Content-Type": PART}
    problem(client.post(address, content=b"abc", headers=headers), 405, "method_not_allowed")
    override = {"X-HTTP-Method-Override": "PATCH"}
    without_tus = owner.headers | {"Upload-Offset": "0"} | override
    problem(client.post(address, content=b"abc", headers=without_tus), 405, "method_not_allowed")
    for method in ("GET", "PUT", "patch", ""):
        answer = client.post(address, content=b"abc", headers=headers | {"X-HTTP-Method-Override": method})
        problem(answer, 405, "method_not_allowed")
    part = client.post(address, content=b"abc", headers=headers | override)
    assert (part.status_code, part.headers["upload-offset"]) == (204, "3")
    override = {"X-HTTP-Method-Override": "DELETE"}
    assert client.post(address, headers=owner.headers | TUS | override).status_code == 204
    assert client.head(address, headers=owner.headers).status_code == 404
    with database.read() as session:
        actions = [entry.action.split()[0] for entry in session.query(AuditEntry) if entry.outcome == "succeeded"]
    assert {"PATCH", "DELETE"} <= set(actions)


@pytest.mark.parametrize(("tus", "stored_bytes"), [(True, 2 * 2**17), (False, 0)])
def test_of_a_broken_body_tus_stores_the_first_bytes(
    client: httpx.Client,
    application: FastAPI,
    owner: rows.Key,
    begun: Callable[..., Address],
    tus: bool,
    stored_bytes: int,
) -> None:
    """A client that sends the whole file continues after the last stored byte."""
    address = begun()
    headers = owner.headers | {"Upload-Offset": "0"} | (TUS | {"Content-Type": PART} if tus else {})
    anyio.run(send_broken_part, application, address, headers)
    assert offset_of(client, owner, address) == stored_bytes
    assert sent(client, owner, address, b"rest") == stored_bytes + 4


async def send_broken_part(application: FastAPI, address: Address, headers: dict[str, str]) -> None:
    """Send two messages of a longer body, then disconnect."""
    messages: list[Message] = [{"type": "http.request", "body": bytes(2**17), "more_body": True} for _ in range(2)]

    async def arrive() -> AsyncIterator[Message]:
        for message in messages:
            yield message
        while True:
            yield {"type": "http.disconnect"}

    received = arrive()

    async def receive() -> Message:
        return await anext(received)

    async def answer(_: Message) -> None:
        """Nobody is connected."""

    scope = {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": "PATCH",
        "scheme": "http",
        "path": address,
        "raw_path": address.encode(),
        "query_string": b"",
        "root_path": "",
        "headers": [
            (b"host", b"corevault.test"),
            (b"content-length", b"1000000"),
            *((name.lower().encode(), value.encode()) for name, value in headers.items()),
        ],
        "client": ("127.0.0.1", 50_000),
        "server": ("corevault.test", 80),
    }
    await application(scope, receive, answer)
