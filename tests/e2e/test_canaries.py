"""W3 from the outside: canary values of private tables are found nowhere in the clear.

They go in through uploads good and bad, whole and in parts, and through jobs that succeed, are cancelled and lose their
worker; then every answer, log, metric, trace, message, database cell, object and file is searched for them.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest

from support.processes import kill
from tests.e2e import canaries
from tests.e2e.house import COLUMNS, House, declaration, ended, job_body, ready_dataset, services, until
from tests.factories import stack

pytestmark = pytest.mark.process

LONG = {"iterations": 800, "sampling_rate": 1.0, "posterior_draws": 150}
CSV = {"Content-Type": "text/csv"}
Found = list[tuple[str, bytes]]
"""Where something was found, and what."""


@dataclass
class Session:
    """All that came of a busy session: named bytes."""

    folder: Path
    settings: dict[str, str]
    answers: Found
    spans: list[bytes]
    messages: list[bytes]


class Listener(httpx.Client):
    """Keeps every answer that it gets."""

    def __init__(self, house: House, key: str, answers: Found) -> None:
        super().__init__(base_url=house.url, headers={"Authorization": f"Bearer {key}"}, timeout=60)
        self._answers = answers

    def send(self, request: httpx.Request, **options: Any) -> httpx.Response:
        answer = super().send(request, **options)
        whole = answer.content + repr(answer.headers.raw).encode()
        self._answers.append((f"{request.method} {request.url.path}", whole))
        return answer


@pytest.fixture(scope="module")
def session(backend: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Session]:
    """A house of its own, so that all that is searched comes of this session."""
    folder = tmp_path_factory.mktemp("canaries")
    with services() as settings, canaries.collector() as (collector, spans):
        own = {"COREVAULT_STORAGE_URL": stack.fresh_storage(folder), "COREVAULT_OTLP_ENDPOINT": collector}
        house = House(folder, **settings, **own, OTEL_BSP_SCHEDULE_DELAY="200")
        try:
            house.wait_ready()
            answers: Found = []
            with canaries.messages(house.data, settings.get("COREVAULT_BROKER_URL")) as messages:
                _busy(house, answers)
            house.stop()
            yield Session(folder, settings | own, answers, spans, messages)
        finally:
            if house.process.poll() is None:
                house.stop()


def _busy(house: House, answers: Found) -> None:
    admin = Listener(house, house.key_file.read_text(), answers)
    with Listener(house, house.new_key("owner"), answers) as owner, admin:
        rows = ready_dataset(owner, canaries.canary_table(), population="canary")
        person = {"name": "person", "type": "integer", "lower": 0, "upper": 10**12}
        unit = {"kind": "column", "column": "person", "max_rows": 5}
        people = ready_dataset(owner, canaries.people_table(), columns=[person, *COLUMNS], privacy_unit=unit, slots=500)
        for dataset in (rows, people):
            _release(owner, dataset)
        for content in canaries.BAD_TABLES:
            _doubtful(owner, content)
        _in_parts(owner)
        _disturbed(house, owner, rows)
        for path in ("/metrics", "/v1/audit-log", "/v1/api-keys", "/v1/jobs", "/v1/datasets", "/v1/releases"):
            admin.get(path)


def _release(owner: httpx.Client, dataset: str) -> None:
    job = owner.post("/v1/jobs", json=job_body(dataset)).json()["id"]
    body = ended(owner, job)
    assert body["status"] == "succeeded", body
    release = f"/v1/releases/{body['release_id']}"
    paths = [f"/v1/datasets/{dataset}{tail}" for tail in ("", "/budget", "/ledger")]
    paths += [f"/v1/jobs/{job}/events", release, f"{release}/certificate"]
    paths += [f"{release}/points?format={kind}" for kind in ("json", "csv", "parquet", "npz")]
    for path in paths:
        assert owner.get(path).status_code == 200
    owner.post("/v1/quotes", json=job_body(dataset))
    owner.post("/v1/jobs", json=job_body(dataset, privacy={"epsilon": 15.0}))
    owner.post("/v1/jobs", json=job_body(dataset, model={}))


def _doubtful(owner: httpx.Client, content: bytes) -> None:
    name = owner.post("/v1/datasets", json=declaration()).json()["id"]
    wrong = {"Content-Digest": "sha-256=:X48E9qOokqqrvdts8nOJRJN3OWDUoyWxBf7kbu9DBPE=:"}
    path = f"/v1/datasets/{name}/content"
    assert owner.put(path, content=content, headers=CSV | wrong).status_code == 422
    assert owner.put(path, content=content, headers=CSV | {"Content-Encoding": "gzip"}).status_code == 415
    assert owner.put(path, content=content, headers=CSV).status_code == 202
    _taken_in(owner, name)
    owner.post("/v1/datasets", json={"name": "x", "columns": COLUMNS})


def _taken_in(owner: httpx.Client, dataset: str) -> None:
    """However it ended."""
    until(lambda: owner.get(f"/v1/datasets/{dataset}").json()["status"] in {"ready", "rejected"}, 60)


def _in_parts(owner: httpx.Client) -> None:
    """One upload that is completed, and one that is left half-way."""
    name = owner.post("/v1/datasets", json=declaration()).json()["id"]
    content = canaries.canary_table() + b"\n1,2.0,a,0\n"
    half = len(content) // 2
    for complete in (False, True):
        begun = owner.post(f"/v1/datasets/{name}/uploads", json={"media_type": "text/csv"}).headers["Location"]
        owner.patch(begun, content=content[:half], headers={"Upload-Offset": "0"})
        if complete:
            owner.patch(begun, content=content[half:], headers={"Upload-Offset": str(half)})
            assert owner.post(f"{begun}/complete").status_code == 202
    _taken_in(owner, name)


def _disturbed(house: House, owner: httpx.Client, dataset: str) -> None:
    """A run that is cancelled in the middle, and one whose workers are killed."""
    for killed in (False, True):
        job = owner.post("/v1/jobs", json=job_body(dataset, parameters=LONG)).json()["id"]
        until(lambda job=job: owner.get(f"/v1/jobs/{job}").json()["progress"]["fraction"] > 0, 60)  # type: ignore[misc]
        if killed:
            kill(house.workers())
        else:
            owner.post(f"/v1/jobs/{job}/cancel")
        ended(owner, job, 90)


def _hunt(named: Iterator[tuple[str, bytes]] | Found) -> Found:
    return [(name, needle) for name, content in named for needle in canaries.found(name.encode() + content)]


@pytest.mark.timeout(400)
def test_no_answer_holds_a_canary(session: Session) -> None:
    """Responses, headers, problem details, event streams, metrics, releases, the audit log."""
    assert len(session.answers) > 60
    assert _hunt(session.answers) == []


def test_no_trace_holds_a_canary(session: Session) -> None:
    assert any(b"job.run" in body for body in session.spans)
    assert _hunt([("spans", body) for body in session.spans]) == []


def test_no_message_holds_a_canary(session: Session) -> None:
    assert any(b"corevault.run_job" in message for message in session.messages)
    assert _hunt([("message", message) for message in session.messages]) == []


def test_no_file_and_no_file_name_holds_a_canary(session: Session) -> None:
    """The local database, sealed uploads, tables, logs, the broker's folder."""
    assert b"job succeeded" in (session.folder / "up.log").read_bytes()
    assert _hunt(canaries.files(session.folder)) == []


def test_no_database_cell_holds_a_canary(session: Session) -> None:
    local = f"sqlite:///{session.folder / 'data' / 'corevault.sqlite3'}"
    found = list(canaries.cells(session.settings.get("COREVAULT_DATABASE_URL", local)))
    assert {"jobs", "audit_entries", "ledger_entries"} <= {name for name, _ in found}
    assert _hunt(found) == []


@pytest.mark.services
def test_neither_redis_nor_the_object_store_holds_a_canary(session: Session) -> None:
    """No result backend either: whatever Redis holds is searched."""
    stored = list(canaries.objects(session.settings["COREVAULT_STORAGE_URL"]))
    assert len(stored) > 6
    assert _hunt(stored) == []
    assert _hunt(list(canaries.keys(session.settings["COREVAULT_BROKER_URL"]))) == []


@pytest.mark.parametrize("needle", canaries.needles())
def test_a_canary_would_be_found(needle: bytes, tmp_path: Path) -> None:
    (tmp_path / "log").write_bytes(b"before" + needle + b"after")
    assert ("log", needle) in _hunt(canaries.files(tmp_path))
