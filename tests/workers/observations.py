"""Collects everything observable about a run as a set of statements.

A leaf of a document is a statement with its path (``release/diagnostics/trusted=False``). Each number in a text or a
file is also a statement without a path. So a value that moves to another place is compared as well.
"""

import io
import json
import logging
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import httpx
import numpy as np
import pyarrow.parquet as pq
import structlog
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from sqlalchemy import select

from app.db import Base
from app.releases.http.formats import MEDIA_TYPES, STORED_NAMES
from tests.factories.rows import Key
from tests.factories.worker import House
from workers.run_task import Pace

_NUMBERS = re.compile(r"(?<![\w.+/-])-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?(?![\w+/=-])")
_INSTANTS = re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:\.\d+)?(?:\+00:00|Z)?")
_TABLES = ("jobs", "releases", "ledger_entries", "ledger_reservations")


class Records(logging.Handler):
    """Keeps the records of the standard library's logging."""

    def __init__(self) -> None:
        super().__init__(logging.DEBUG)
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(f"{record.name} {record.getMessage()} {record.args!r} {record.exc_text}")


class Observer:
    """Runs jobs and collects their outputs.

    ``names`` are random ids of contents, which reveal nothing and are replaced.
    """

    def __init__(self, house: House, client: httpx.Client, spans: InMemorySpanExporter, names: Sequence[str]) -> None:
        self._house, self._client, self._spans = house, client, spans
        self._names = re.compile("|".join(map(re.escape, names)))

    def run(self, dataset_id: str, owner: Key, request: Mapping[str, Any]) -> set[str]:
        """Run one job on the dataset and return the statements about it."""
        self._spans.clear()
        records = Records()
        logging.getLogger().addHandler(records)
        try:
            with structlog.testing.capture_logs() as logs:
                job_id = self._house.job(dataset_id, owner, **request)
                self._house.runner(pace=Pace(60, 60)).run(job_id)
        finally:
            logging.getLogger().removeHandler(records)
        assert self._house.read(job_id).status == "succeeded"
        documents = {
            "logs": logs,
            "records": records.lines,
            "spans": self._list_spans(),
            "metrics": self._metrics(owner),
        }
        documents |= self._answers(job_id, owner) | self._rows(job_id)
        statements = {text for name, document in documents.items() for text in self._statements(name, document)}
        return statements | self._file_statements(job_id, owner)

    def _list_spans(self) -> list[Any]:
        spans = sorted(self._spans.get_finished_spans(), key=lambda span: span.start_time or 0)
        return [
            [
                span.name,
                dict(span.attributes or {}),
                [[e.name, dict(e.attributes or {})] for e in span.events],
                str(span.status),
            ]
            for span in spans
        ]

    def _metrics(self, owner: Key) -> dict[str, str]:
        lines = self._client.get("/metrics", headers=owner.headers).text.splitlines()
        return dict(line.rsplit(" ", 1) for line in lines if line and not line.startswith("#"))

    def _answers(self, job_id: str, owner: Key) -> dict[str, Any]:
        """The API's answers about the job, its release and its certificate."""
        paths = {"job": f"/v1/jobs/{job_id}", "release": f"/v1/releases/{self._house.read(job_id).release_id}"}
        paths["certificate"] = f"{paths['release']}/certificate"
        answers = {name: self._client.get(path, headers=owner.headers) for name, path in paths.items()}
        return {name: answer.raise_for_status().json() for name, answer in answers.items()}

    def _rows(self, job_id: str) -> dict[str, Any]:
        with self._house.database.read() as session:
            tables = {name: Base.metadata.tables[name] for name in _TABLES}
            return {
                name: [dict(row) for row in session.execute(select(table).where(_of(table, job_id))).mappings()]
                for name, table in tables.items()
            }

    def _file_statements(self, job_id: str, owner: Key) -> set[str]:
        """Sizes of the release's representations, and the numbers and words in them."""
        statements, root = set(), f"/v1/releases/{self._house.read(job_id).release_id}"
        links = self._client.get(root, headers=owner.headers).json()["links"]
        for part, names in STORED_NAMES.items():
            if part not in links:  # a belief without points
                continue
            for kind, name in names.items():
                accept = {"Accept": MEDIA_TYPES[kind]}
                answer = self._client.get(f"{root}/{part}", headers={**owner.headers, **accept}).raise_for_status()
                statements.add(f"size of {name}={len(answer.content)}")
                statements |= set(self._statements(f"file {name}", self._read(kind, answer.content)))
        return statements

    @staticmethod
    def _read(name: str, content: bytes) -> Any:
        if name == "json":
            return json.loads(content)
        if name == "parquet":
            table = pq.read_table(io.BytesIO(content))
            return {"table": table.to_pydict(), "metadata": str(table.schema.metadata)}
        if name == "csv":
            return content.decode()
        with np.load(io.BytesIO(content)) as arrays:
            return {key: array.tolist() for key, array in arrays.items()}

    def _statements(self, path: str, document: Any) -> Iterator[str]:
        for place, value in _leaves(path, document):
            text = self._names.sub("NAME", str(value))
            yield f"{place}={text}"
            yield from (f"the number {float(number):.17g}" for number in _NUMBERS.findall(_INSTANTS.sub("", text)))


def _of(table: Any, job_id: str) -> Any:
    return (table.c.job_id if "job_id" in table.c else table.c.id) == job_id


def _leaves(path: str, document: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(document, Mapping):
        for name, value in document.items():
            yield from _leaves(f"{path}/{name}", value)
    elif isinstance(document, list | tuple):
        yield f"{path}/length", len(document)
        for index, value in enumerate(document):
            yield from _leaves(f"{path}/{index}", value)
    else:
        yield path, document


def find_differences(one: Sequence[set[str]], other: Sequence[set[str]]) -> set[str]:
    """Find statements of all runs on one content and of none on the other."""
    always, also = one[0].intersection(*one), other[0].intersection(*other)
    return (always - other[0].union(*other)) | (also - one[0].union(*one))
