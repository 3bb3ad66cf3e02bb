"""The tus protocol 1.0.0 at the addresses of uploads, as its clients follow it."""

from collections.abc import Callable
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

import httpx
import pytest

from app.audit.models import AuditEntry
from app.datasets.models import Content
from app.datasets.uploads.models import Upload
from app.db import Database
from app.services import Services
from tests.datasets.tus import CSV, PART, TUS, create, send_part
from tests.factories import rows
from tests.factories.datasets import everything, problem
from tests.factories.uploads import TABLE, Address, complete, send


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
