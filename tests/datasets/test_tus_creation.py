"""The creation of an upload as tus clients ask for it: by headers, without a body."""

import httpx
import pytest

from app.datasets.uploads.models import Upload
from app.db import Database
from app.http.requests.models import IdempotentAnswer
from app.services import Services
from tests.datasets.tus import CSV, PART, TUS, create, encode
from tests.factories import rows
from tests.factories.datasets import everything, problem


def test_a_json_body_decides_also_for_tus_clients(client: httpx.Client, owner: rows.Key, dataset_id: str) -> None:
    body = {"media_type": "application/vnd.apache.parquet", "length": 7}
    headers = owner.headers | TUS | {"Upload-Length": "9", "Upload-Metadata": CSV}
    answer = client.post(f"/v1/datasets/{dataset_id}/uploads", json=body, headers=headers)
    assert answer.status_code == 201
    assert {name: answer.json()[name] for name in body} == body


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
