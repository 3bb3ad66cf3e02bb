"""Large uploads are sent in parts and survive broken connections."""

import io
import json
from collections.abc import Iterator
from dataclasses import dataclass, field

import httpx
import pytest
from corevault import Client, StateConflict, UploadInterrupted, _resumable
from corevault._digest import digest_bytes

from tests.client.fake import DATASET, ok, problem

BODY = bytes(range(256)) * 10
PART = 1000


@dataclass
class Vault:
    """A server that stores parts. Each PATCH takes the next of ``faults``, where None means success."""

    faults: list[str | None] = field(default_factory=list)
    stored: bytearray = field(default_factory=bytearray)
    declared: dict[str, object] = field(default_factory=dict)
    complete: bool = False
    calls: list[str] = field(default_factory=list)

    def __call__(self, request: httpx.Request) -> httpx.Response:
        self.calls.append(f"{request.method} {request.url.path}")
        if request.method == "POST" and request.url.path.endswith("/uploads"):
            self.declared = json.loads(request.read())
            return ok({"id": "up_1"}, 201)
        if request.method == "HEAD":
            return httpx.Response(200, headers={"Upload-Offset": str(len(self.stored))})
        if request.method == "PUT":
            request.read()
            return ok(DATASET, 202)
        if request.method == "PATCH":
            return self._patch(request, self.faults.pop(0) if self.faults else None)
        self.complete = True
        return ok(DATASET, 202)

    def _patch(self, request: httpx.Request, fault: str | None) -> httpx.Response:
        body = request.read()
        assert int(request.headers["upload-offset"]) == len(self.stored)
        assert request.headers["content-digest"] == digest_bytes(body)
        if fault not in {None, "answer"}:
            if fault == "cut":
                raise httpx.WriteError("cut")
            return problem(503 if fault == "dependency_unavailable" else 409, str(fault))
        self.stored += body
        if fault == "answer":
            raise httpx.ReadError("lost")
        return httpx.Response(204, headers={"Upload-Offset": str(len(self.stored))})

    def client(self, max_retries: int = 2) -> Client:
        transport = httpx.MockTransport(self)
        return Client("http://vault.test", "cv_secret", transport=transport, max_retries=max_retries)


@pytest.fixture(autouse=True)
def _small_parts_without_delays(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_resumable, "PART_BYTES", PART)
    monkeypatch.setattr(_resumable, "LARGE_BYTES", 2 * PART)
    monkeypatch.setattr("time.sleep", lambda _: None)


def test_only_large_sources_are_sent_in_parts() -> None:
    vault, reported = Vault(), list[int]()
    with vault.client() as client:
        assert client.datasets.upload("ds_1", BODY, progress=reported.append, max_null_share=None).id == "ds_1"
    assert bytes(vault.stored) == BODY
    assert vault.complete
    assert vault.declared == {"media_type": "text/csv", "length": len(BODY), "digest": digest_bytes(BODY)}
    assert reported == [0, 1000, 2000, 2560]
    small = Vault()
    with small.client() as client:
        client.datasets.upload("ds_1", BODY[:PART], max_null_share=None)
        client.datasets.upload("ds_1", BODY, resumable=False, max_null_share=None)
    assert small.calls == ["PUT /v1/datasets/ds_1/content"] * 2


def test_a_one_shot_stream_survives_broken_connections() -> None:
    vault = Vault(["cut", None, "cut", "cut"])

    def stream() -> Iterator[bytes]:
        for start in range(0, len(BODY), 7):
            yield BODY[start : start + 7]

    with vault.client() as client:
        client.datasets.upload("ds_1", stream(), resumable=True)
    assert bytes(vault.stored) == BODY
    assert vault.declared == {"media_type": "text/csv"}


@pytest.mark.parametrize("fault", ["cut", "answer", "dependency_unavailable", "state_conflict", "offset_mismatch"])
def test_a_transient_fault_is_retried(fault: str) -> None:
    vault = Vault([fault, None, fault, fault])
    with vault.client() as client:
        client.datasets.upload("ds_1", io.BytesIO(BODY), max_null_share=None)
    assert bytes(vault.stored) == BODY
    assert vault.complete


def test_an_upload_interrupted_by_an_outage_can_be_resumed() -> None:
    vault = Vault([None, *["cut"] * _resumable.ATTEMPTS])
    with vault.client() as client:
        with pytest.raises(UploadInterrupted) as interrupted:
            client.datasets.upload("ds_1", BODY, max_null_share=None)
        assert (interrupted.value.upload_id, interrupted.value.offset) == ("up_1", 1000)
        assert not vault.complete
        client.datasets.resume("ds_1", "up_1", BODY)
    assert bytes(vault.stored) == BODY
    assert vault.complete


def test_without_retries_a_fault_interrupts_the_upload() -> None:
    vault = Vault(["state_conflict"])
    with vault.client(max_retries=0) as client, pytest.raises(UploadInterrupted) as interrupted:
        client.datasets.upload("ds_1", BODY, max_null_share=None)
    assert isinstance(interrupted.value.__cause__, StateConflict)
    assert [call for call in vault.calls if call.startswith("PATCH")] == ["PATCH /v1/datasets/ds_1/uploads/up_1"]
