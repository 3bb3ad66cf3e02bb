"""W3: a worker's logs and spans are the same for all tables of one declaration."""

import logging
import re
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from structlog.testing import capture_logs

from app import tracing
from tests.factories import rows
from tests.factories.datasets import declared, uploaded
from tests.factories.worker import House

SLOTS = 400
COUNTS = (7, 301)
OPAQUE = re.compile(r"\b(?:[a-z]+_)?[0-9a-z]{26}\b|\b[0-9a-f]{8,}(?:-[0-9a-f]{4,})*\b")
"""Ids, which differ from one upload to the next."""
DURATIONS = ("seconds", "elapsed", "duration", "timestamp")


@pytest.fixture
def spans() -> Iterator[InMemorySpanExporter]:
    exporter = InMemorySpanExporter()
    tracing.start(SimpleSpanProcessor(exporter), "test")
    yield exporter
    tracing.stop()


def _content(count: int) -> bytes:
    """A table of ``count`` rows, and a null row at the end."""
    lines = [
        f"{20 + place % 60},{1 + place % 90},{'Male' if place % 3 else 'Female'},{place % 2}" for place in range(count)
    ]
    return "\n".join(["age,hours,sex,income_gt_50k", *lines, ",,,", ""]).encode()


def _normalise(record: dict[str, Any]) -> str:
    stable = {name: value for name, value in record.items() if not any(word in name for word in DURATIONS)}
    return OPAQUE.sub("ID", repr(sorted(stable.items())))


def test_logs_and_spans_do_not_depend_on_rows(
    house: House,
    api: httpx.Client,
    owner: rows.Key,
    spans: InMemorySpanExporter,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """W3: no count of rows, of a table or of a row group, is in a log line, a span or a span's event."""
    caplog.set_level(logging.DEBUG)
    seen: list[list[str]] = []
    for count in COUNTS:
        dataset_id = str(declared(api, owner, slots=SLOTS, budget={"epsilon": 20.0, "delta": 1e-6})["id"])
        spans.clear()
        caplog.clear()
        with capture_logs() as logs:
            uploaded(api, owner, dataset_id, _content(count))
            house.work()
            job_id = house.job(dataset_id, owner)
            house.runner().run(job_id)
        assert house.read(job_id).status == "succeeded"
        lines = [_normalise(dict(entry)) for entry in logs]
        lines += [_normalise({"logger": record.name, "message": record.getMessage()}) for record in caplog.records]
        for span in spans.get_finished_spans():
            lines.append(_normalise({"span": span.name, **(span.attributes or {})}))
            lines += [_normalise({"event": event.name, **(event.attributes or {})}) for event in span.events]
        seen.append(sorted(set(lines)))
    assert any("job.run" in line for line in seen[0])
    assert any("content ingested" in line for line in seen[0])
    assert seen[0] == seen[1]
