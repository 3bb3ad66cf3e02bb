"""W3, end to end: canary values of private tables never appear in plaintext.

They are uploaded in good and bad files, as a whole and in parts. Jobs on them succeed, are cancelled, or lose their
worker. Then every answer, log, metric, trace, message, database cell, object and file is searched.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest

from support.processes import kill
from tests.e2e import canaries
from tests.e2e.house import COLUMNS, MODEL, House, declaration, job_body, ready_dataset, services, until, wait_for_job
from tests.factories import stack

pytestmark = pytest.mark.process

LONG = {"iterations": 600, "sampling_rate": 1.0, "posterior_draws": 150}
CSV = {"Content-Type": "text/csv"}
SOON = {"COREVAULT_LEASE_SECONDS": "4", "COREVAULT_HEARTBEAT_SECONDS": "1"}
"""The run of a killed worker continues after a short lease; tests/e2e/test_kill.py uses the default."""
LAYERS = [{"weights": [[1.0, -0.5], [0.3, 2.0]], "bias": [0.1, 0.0], "activation": "sigmoid"}]
TERMS = MODEL | {
    "features": [
        {"spline": "dose", "df": 4},
        {"polynomial": "age", "degree": 2},
        {"interaction": ["age", "group"]},
        {"fourier": ["age", "dose"], "units": 3, "seed": 5},
        {"network": ["age", "dose"], "layers": LAYERS},
    ]
}
"""A model with every kind of term of the columns that hold canaries."""
Named = list[tuple[str, bytes]]
"""Names and contents."""


@dataclass
class Session:
    """All outputs of a session with many requests."""

    folder: Path
    settings: dict[str, str]
    answers: Named
    spans: list[bytes]
    messages: list[bytes]


class RecordingClient(httpx.Client):
    """A client that records every answer."""

    def __init__(self, house: House, key: str, answers: Named) -> None:
        super().__init__(base_url=house.url, headers={"Authorization": f"Bearer {key}"}, timeout=60, verify=False)
        self._answers = answers

    def send(self, request: httpx.Request, **options: Any) -> httpx.Response:
        answer = super().send(request, **options)
        whole = answer.content + repr(answer.headers.raw).encode()
        self._answers.append((f"{request.method} {request.url.path}", whole))
        return answer


@pytest.fixture(scope="module")
def session(backend: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Session]:
    """Start a separate service, so that all data searched is from this session."""
    folder = tmp_path_factory.mktemp("canaries")
    with services() as settings, canaries.collector() as (collector, spans):
        own = {"COREVAULT_STORAGE_URL": stack.fresh_storage(folder), "COREVAULT_OTLP_ENDPOINT": collector}
        house = House(folder, **settings, **own, **SOON, OTEL_BSP_SCHEDULE_DELAY="200")
        try:
            house.wait_ready()
            answers: Named = []
            with canaries.messages(house.data, settings.get("COREVAULT_BROKER_URL")) as messages:
                _use_everything(house, answers)
            house.stop()
            yield Session(folder, settings | own, answers, spans, messages)
        finally:
            if house.process.poll() is None:
                house.stop()


def _use_everything(house: House, answers: Named) -> None:
    admin = RecordingClient(house, house.key_file.read_text(), answers)
    with RecordingClient(house, house.new_key("owner"), answers) as owner, admin:
        rows = ready_dataset(owner, canaries.canary_table(), population="canary")
        person = {"name": "person", "type": "integer", "lower": 0, "upper": 10**12}
        unit = {"kind": "column", "column": "person", "max_rows": 5}
        people = ready_dataset(owner, canaries.people_table(), columns=[person, *COLUMNS], privacy_unit=unit, slots=500)
        for dataset in (rows, people):
            _release(owner, dataset, MODEL)
            _release(owner, dataset, TERMS)
        for content in canaries.BAD_TABLES:
            _upload_bad_file(owner, content)
        _upload_in_parts(owner)
        _disturb_jobs(house, owner, rows)
        for path in ("/metrics", "/v1/audit-log", "/v1/api-keys", "/v1/jobs", "/v1/datasets", "/v1/releases"):
            admin.get(path)


def _release(owner: httpx.Client, dataset: str, model: dict[str, Any]) -> None:
    job = owner.post("/v1/jobs", json=job_body(dataset, model=model)).json()["id"]
    body = wait_for_job(owner, job)
    assert body["status"] == "succeeded", body
    release = f"/v1/releases/{body['release_id']}"
    paths = [f"/v1/datasets/{dataset}{tail}" for tail in ("", "/budget", "/ledger")]
    paths += [f"/v1/jobs/{job}/events", release, f"{release}/certificate"]
    paths += [f"{release}/points?format={kind}" for kind in ("json", "csv", "parquet", "npz")]
    paths += [f"{release}/belief?format={kind}" for kind in ("json", "parquet", "npz")]
    for path in paths:
        assert owner.get(path).status_code == 200
    owner.post("/v1/quotes", json=job_body(dataset, model=model))
    owner.post("/v1/jobs", json=job_body(dataset, privacy={"epsilon": 15.0}))
    owner.post("/v1/jobs", json=job_body(dataset, model={}))


def _upload_bad_file(owner: httpx.Client, content: bytes) -> None:
    name = owner.post("/v1/datasets", json=declaration()).json()["id"]
    wrong = {"Content-Digest": "sha-256=:X48E9qOokqqrvdts8nOJRJN3OWDUoyWxBf7kbu9DBPE=:"}
    path = f"/v1/datasets/{name}/content"
    assert owner.put(path, content=content, headers=CSV | wrong).status_code == 422
    assert owner.put(path, content=content, headers=CSV | {"Content-Encoding": "gzip"}).status_code == 415
    assert owner.put(path, content=content, headers=CSV).status_code == 202
    _wait_for_ingestion(owner, name)
    owner.post("/v1/datasets", json={"name": "x", "columns": COLUMNS})


def _wait_for_ingestion(owner: httpx.Client, dataset: str) -> None:
    """Wait until the content is ready or rejected."""
    until(lambda: owner.get(f"/v1/datasets/{dataset}").json()["status"] in {"ready", "rejected"}, 60)


def _upload_in_parts(owner: httpx.Client) -> None:
    """Leave one upload unfinished, and complete another."""
    name = owner.post("/v1/datasets", json=declaration()).json()["id"]
    content = canaries.canary_table() + b"\n1,2.0,a,0\n"
    half = len(content) // 2
    for complete in (False, True):
        upload = owner.post(f"/v1/datasets/{name}/uploads", json={"media_type": "text/csv"}).headers["Location"]
        owner.patch(upload, content=content[:half], headers={"Upload-Offset": "0"})
        if complete:
            owner.patch(upload, content=content[half:], headers={"Upload-Offset": str(half)})
            assert owner.post(f"{upload}/complete").status_code == 202
    _wait_for_ingestion(owner, name)


def _disturb_jobs(house: House, owner: httpx.Client, dataset: str) -> None:
    """Cancel one job during its run, and kill the workers of another."""
    for killed in (False, True):
        job = owner.post("/v1/jobs", json=job_body(dataset, parameters=LONG)).json()["id"]
        until(lambda job=job: owner.get(f"/v1/jobs/{job}").json()["progress"]["fraction"] > 0, 60)  # type: ignore[misc]
        if killed:
            kill(house.workers())
        else:
            owner.post(f"/v1/jobs/{job}/cancel")
        wait_for_job(owner, job, 90)


def _search(named: Iterator[tuple[str, bytes]] | Named) -> Named:
    return [(name, needle) for name, content in named for needle in canaries.find_needles(name.encode() + content)]


@pytest.mark.timeout(400)
def test_no_answer_holds_a_canary(session: Session) -> None:
    """Responses include headers, problem details, event streams, metrics, releases and the audit log."""
    assert len(session.answers) > 60
    assert _search(session.answers) == []


def test_no_trace_holds_a_canary(session: Session) -> None:
    assert any(b"job.run" in body for body in session.spans)
    assert _search([("spans", body) for body in session.spans]) == []


def test_no_message_holds_a_canary(session: Session) -> None:
    assert any(b"corevault.run_job" in message for message in session.messages)
    assert _search([("message", message) for message in session.messages]) == []


def test_no_file_and_no_file_name_holds_a_canary(session: Session) -> None:
    """Files include the local database, sealed uploads, tables, logs and the broker's folder."""
    assert b"job succeeded" in (session.folder / "up.log").read_bytes()
    assert _search(canaries.files(session.folder)) == []


def test_no_database_cell_holds_a_canary(session: Session) -> None:
    local = f"sqlite:///{session.folder / 'data' / 'corevault.sqlite3'}"
    tables = list(canaries.cells(session.settings.get("COREVAULT_DATABASE_URL", local)))
    assert {"jobs", "audit_entries", "ledger_entries"} <= {name for name, _ in tables}
    assert _search(tables) == []


@pytest.mark.services
def test_neither_redis_nor_the_object_store_holds_a_canary(session: Session) -> None:
    """All keys of Redis are searched, so there is no result backend either."""
    stored = list(canaries.objects(session.settings["COREVAULT_STORAGE_URL"]))
    assert len(stored) > 6
    assert _search(stored) == []
    assert _search(list(canaries.keys(session.settings["COREVAULT_BROKER_URL"]))) == []


@pytest.mark.parametrize("needle", canaries.needles())
def test_search_finds_a_canary(needle: bytes, tmp_path: Path) -> None:
    (tmp_path / "log").write_bytes(b"before" + needle + b"after")
    assert ("log", needle) in _search(canaries.files(tmp_path))
