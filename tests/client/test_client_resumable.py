"""Large uploads go in parts, and go on after whatever breaks."""

import io
import json
from collections.abc import Iterator
from dataclasses import dataclass, field

import httpx
import pytest
from corevault import Client, StateConflict, UploadInterrupted, _resumable
from corevault._digest import of_bytes

from tests.client.fake import DATASET, ok, problem

BODY = bytes(range(256)) * 10
PART = 1000


@dataclass
class Vault:
    """A server that keeps parts; ``faults`` are met by PATCHes in turn (None: none)."""

    faults: list[str | None] = field(default_factory=list)
    kept: bytearray = field(default_factory=bytearray)
    announced: dict[str, object] = field(default_factory=dict)
    complete: bool = False
    calls: list[str] = field(default_factory=list)

    def __call__(self, request: httpx.Request) -> httpx.Response:
        self.calls.append(f"{request.method} {request.url.path}")
        if request.method == "POST" and request.url.path.endswith("/uploads"):
            self.announced = json.loads(request.read())
            return ok({"id": "up_1"}, 201)
        if request.method == "HEAD":
            return httpx.Response(200, headers={"Upload-Offset": str(len(self.kept))})
        if request.method == "PUT":
            request.read()
            return ok(DATASET, 202)
        if request.method == "PATCH":
            return self._patch(request, self.faults.pop(0) if self.faults else None)
        self.complete = True
        return ok(DATASET, 202)

    def _patch(self, request: httpx.Request, fault: str | None) -> httpx.Response:
        body = request.read()
        assert int(request.headers["upload-offset"]) == len(self.kept)
        assert request.headers["content-digest"] == of_bytes(body)
        if fault not in {None, "answer"}:
            if fault == "cut":
                raise httpx.WriteError("cut")
            return problem(503 if fault == "dependency_unavailable" else 409, str(fault))
        self.kept += body
        if fault == "answer":
            raise httpx.ReadError("lost")
        return httpx.Response(204, headers={"Upload-Offset": str(len(self.kept))})

    def client(self, max_retries: int = 2) -> Client:
        transport = httpx.MockTransport(self)
        return Client("http://vault.test", "cv_secret", transport=transport, max_retries=max_retries)


@pytest.fixture(autouse=True)
def _at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_resumable, "PART_BYTES", PART)
    monkeypatch.setattr(_resumable, "LARGE_BYTES", 2 * PART)
    monkeypatch.setattr("corevault._resumable.time.sleep", lambda _: None)


def test_what_is_large_goes_in_parts_and_the_rest_in_one_piece() -> None:
    vault, told = Vault(), list[int]()
    with vault.client() as client:
        assert client.datasets.upload("ds_1", BODY, progress=told.append, max_null_share=None).id == "ds_1"
    assert bytes(vault.kept) == BODY
    assert vault.complete
    assert vault.announced == {"media_type": "text/csv", "length": len(BODY), "digest": of_bytes(BODY)}
    assert told == [0, 1000, 2000, 2560]
    small = Vault()
    with small.client() as client:
        client.datasets.upload("ds_1", BODY[:PART], max_null_share=None)
        client.datasets.upload("ds_1", BODY, resumable=False, max_null_share=None)
    assert small.calls == ["PUT /v1/datasets/ds_1/content"] * 2


def test_a_stream_that_cannot_be_read_twice_is_resumed_too() -> None:
    vault = Vault(["cut", None, "cut", "cut"])

    def stream() -> Iterator[bytes]:
        for start in range(0, len(BODY), 7):
            yield BODY[start : start + 7]

    with vault.client() as client:
        client.datasets.upload("ds_1", stream(), resumable=True)
    assert bytes(vault.kept) == BODY
    assert vault.announced == {"media_type": "text/csv"}


@pytest.mark.parametrize("fault", ["cut", "answer", "dependency_unavailable", "state_conflict", "offset_mismatch"])
def test_it_goes_on_after_any_fault_that_passes(fault: str) -> None:
    vault = Vault([fault, None, fault, fault])
    with vault.client() as client:
        client.datasets.upload("ds_1", io.BytesIO(BODY), max_null_share=None)
    assert bytes(vault.kept) == BODY
    assert vault.complete


def test_a_server_that_stays_away_interrupts_it_and_it_is_resumed_later() -> None:
    vault = Vault([None, *["cut"] * _resumable.ATTEMPTS])
    with vault.client() as client:
        with pytest.raises(UploadInterrupted) as interrupted:
            client.datasets.upload("ds_1", BODY, max_null_share=None)
        assert (interrupted.value.upload_id, interrupted.value.offset) == ("up_1", 1000)
        assert not vault.complete
        client.datasets.resume("ds_1", "up_1", BODY)
    assert bytes(vault.kept) == BODY
    assert vault.complete


def test_a_client_that_repeats_nothing_resumes_nothing() -> None:
    vault = Vault(["state_conflict"])
    with vault.client(max_retries=0) as client, pytest.raises(UploadInterrupted) as interrupted:
        client.datasets.upload("ds_1", BODY, max_null_share=None)
    assert isinstance(interrupted.value.__cause__, StateConflict)
    assert [call for call in vault.calls if call.startswith("PATCH")] == ["PATCH /v1/datasets/ds_1/uploads/up_1"]
