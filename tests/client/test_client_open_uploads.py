"""Incomplete uploads in parts are listed, resumed and discarded, by id or by object."""

from typing import Any

import httpx
import pytest
from corevault import OpenUpload, StateConflict

from tests.client.fake import DATASET, TIME, Script, ok, problem

UPLOAD: dict[str, Any] = {
    "id": "up_1",
    "dataset_id": "ds_1",
    "media_type": "text/csv",
    "length": 8,
    "offset": 4,
    "max_part_bytes": 1 << 30,
    "created_at": TIME,
    "expires_at": TIME,
}


def test_open_uploads_are_listed_page_by_page() -> None:
    later = UPLOAD | {"id": "up_2", "length": None}
    script = Script([ok({"items": [UPLOAD], "next_cursor": "c"}), ok({"items": [later], "next_cursor": None})])
    with script.client() as client:
        uploads = list(client.datasets.open_uploads("ds_1", limit=1))
    assert [(each.id, each.offset, each.length) for each in uploads] == [("up_1", 4, 8), ("up_2", 4, None)]
    assert uploads[0].expires_at is not None
    assert [str(request.url) for request in script.seen] == [
        "http://vault.test/v1/datasets/ds_1/uploads?limit=1",
        "http://vault.test/v1/datasets/ds_1/uploads?limit=1&cursor=c",
    ]


def test_a_listed_upload_is_resumed_at_its_offset() -> None:
    """The caller needs only the source, because the list gives the id."""
    head = httpx.Response(200, headers={"Upload-Offset": "4"})
    listed = ok({"items": [UPLOAD], "next_cursor": None})
    script = Script([listed, head, httpx.Response(204), ok(DATASET, 202)])
    with script.client() as client:
        (upload,) = client.datasets.open_uploads("ds_1")
        assert client.datasets.resume("ds_1", upload, b"age\n1\n2\n").id == "ds_1"
    assert [f"{request.method} {request.url.path}" for request in script.seen[1:]] == [
        "HEAD /v1/datasets/ds_1/uploads/up_1",
        "PATCH /v1/datasets/ds_1/uploads/up_1",
        "POST /v1/datasets/ds_1/uploads/up_1/complete",
    ]
    assert script.bodies[2] == b"1\n2\n"


@pytest.mark.parametrize("upload", ["up_1", OpenUpload.from_json(UPLOAD)])
def test_an_open_upload_is_discarded(upload: str | OpenUpload) -> None:
    script = Script([httpx.Response(204)])
    with script.client() as client:
        client.datasets.discard_upload("ds_1", upload)
    assert (script.seen[0].method, script.seen[0].url.path) == ("DELETE", "/v1/datasets/ds_1/uploads/up_1")


def test_a_refused_upload_names_the_open_uploads() -> None:
    script = Script([problem(409, "state_conflict", uploads=["up_1", "up_2"])])
    with script.client(max_retries=0) as client, pytest.raises(StateConflict) as caught:
        client.datasets.upload("ds_1", iter([b"age\n1\n"]), resumable=True)
    assert caught.value.uploads == ("up_1", "up_2")
    assert "uploads: up_1, up_2" in str(caught.value)
