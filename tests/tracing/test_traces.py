"""Traces follow a job from its call to its release.

They contain ids and codes only, and there are none without the extra.
"""

import builtins
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from app import tracing
from app.db import Database
from tests.factories import rows
from tests.factories.worker import House, job_body

CANARY = "canary3391"
ATTRIBUTES = {"request_id", "status", "code", "job_id", "task", "attempt"}


@pytest.fixture
def spans() -> Iterator[InMemorySpanExporter]:
    exporter = InMemorySpanExporter()
    tracing.start(SimpleSpanProcessor(exporter), "test")
    yield exporter
    tracing.stop()


def _by_name(exporter: InMemorySpanExporter) -> dict[str, ReadableSpan]:
    return {span.name: span for span in exporter.get_finished_spans()}


def _identity(span: ReadableSpan) -> tuple[int, int]:
    return span.context.trace_id, span.context.span_id


def test_a_job_is_one_trace_from_the_call_to_the_release(
    house: House, api: httpx.Client, owner: rows.Key, spans: InMemorySpanExporter
) -> None:
    """The worker reads the trace context in the job's row. A message has only an id."""
    answer = api.post("/v1/jobs", headers=owner.headers, json=job_body(house.ready_dataset(owner)))
    assert len(house.queue.sent) == 1
    house.run(answer.json()["id"])
    found = _by_name(spans)
    call, job = found["POST /v1/jobs"], found["job"]
    below = {"ledger.reserve": call, "job": call, "job.open": job, "job.run": job, "job.publish": job}
    for name, parent in below.items():
        above = found[name].parent
        assert above is not None
        assert (above.trace_id, above.span_id) == _identity(parent), name
    assert dict(call.attributes or {}) == {"request_id": answer.headers["X-Request-Id"], "status": 202}
    assert (job.attributes or {})["request_id"] == answer.headers["X-Request-Id"]


def test_the_span_of_a_refusal_has_its_code(api: httpx.Client, spans: InMemorySpanExporter) -> None:
    api.get(f"/v1/jobs/{CANARY}", headers={"traceparent": f"00-{'a' * 32}-{'b' * 16}-01"})
    span = _by_name(spans)["GET /v1/jobs/{job_id}"]
    assert (span.attributes or {})["code"] == "unauthenticated"
    assert span.parent is None, "no context is taken from callers"


def test_no_span_contains_input_or_messages_of_exceptions(
    house: House, api: httpx.Client, owner: rows.Key, spans: InMemorySpanExporter, monkeypatch: pytest.MonkeyPatch
) -> None:
    """W3: spans contain no names, bodies, queries or messages of exceptions."""
    dataset = house.ready_dataset(owner, name=CANARY, population=CANARY)
    api.get(f"/v1/datasets/{CANARY}?{CANARY}=1", headers=owner.headers)
    api.patch(f"/v1/datasets/{dataset}", headers=owner.headers, json={"description": CANARY})

    def fail(*_: Any, **__: Any) -> None:
        raise RuntimeError(CANARY)

    with monkeypatch.context() as patched:
        patched.setattr("workers.run_task.compute", fail)
        house.run(house.job(dataset, owner))
        patched.setattr("app.jobs.service.price", fail)
        assert api.post("/v1/jobs", headers=owner.headers, json=job_body(dataset)).status_code == 500
    finished = spans.get_finished_spans()
    assert {"job", "job.run", "POST /v1/jobs"} <= {span.name for span in finished}
    assert CANARY not in "".join(span.to_json() for span in finished)
    assert {name for span in finished for name in span.attributes or {}} <= ATTRIBUTES
    assert all(not span.events for span in finished)


def test_without_the_extra_an_endpoint_is_refused(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    really = builtins.__import__

    def without(name: str, *rest: Any) -> Any:
        if name.startswith("opentelemetry"):
            raise ImportError(name)
        return really(name, *rest)

    monkeypatch.setattr(builtins, "__import__", without)
    tracing.configure(None, "test")
    with tracing.open_span("a", parent="00-x", job_id="job_1") as opened:
        opened.set_attributes(status=200)
    assert tracing.find_context() is None
    with pytest.raises(tracing.NotInstalled):
        tracing.configure("http://127.0.0.1:4318", "test")
