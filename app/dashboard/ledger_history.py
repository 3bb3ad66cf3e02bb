"""The entries of an account as table rows and chart steps."""

import csv
import io
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from app.dashboard.charts.steps import Refusals, Span, Step
from app.dashboard.wording import describe_model, name_kind
from app.jobs.models import Job
from app.jobs.repository import Submission
from app.ledger import LedgerEntry, LedgerStep

_FORMULA = ("=", "+", "-", "@", "\t", "\r")
"""First characters of cells that spreadsheets execute."""
_HEADER = (
    *("sequence", "at", "kind", "job_id", "key_id", "submitted_by", "purpose", "model", "release_id"),
    *("epsilon_after", "entry_hash"),
)


@dataclass(frozen=True, slots=True)
class EntryRow:
    """An entry with the job that it is about.

    ``key_id`` and ``submitter`` are id and name of the key that submitted the job; all texts are empty without a job.
    """

    entry: LedgerEntry
    key_id: str = ""
    submitter: str = ""
    purpose: str = ""
    model: str = ""
    release_id: str | None = None


def make_rows(
    entries: Iterable[LedgerEntry], jobs: Iterable[Job], submissions: Mapping[str, Submission]
) -> list[EntryRow]:
    """Make the rows of ``entries``; ``submissions`` are by the id of a job."""
    by_id = {job.id: job for job in jobs}
    return [_make_row(entry, by_id.get(entry.job_id or ""), submissions) for entry in entries]


def _make_row(entry: LedgerEntry, job: Job | None, submissions: Mapping[str, Submission]) -> EntryRow:
    if job is None:
        return EntryRow(entry)
    by = submissions[job.id]
    return EntryRow(entry, by.caller_id, by.caller_name, by.purpose or "", describe_job(job), job.release_id)


def describe_job(job: Job) -> str:
    """Describe the model of a job in one line."""
    model = job.plan.get("model")
    return describe_model(model) if isinstance(model, Mapping) else ""


def make_steps(entries: Iterable[LedgerStep]) -> list[Step]:
    """Make the steps of a chart."""
    return [Step(each.at, each.epsilon_after, name_kind(each.kind)) for each in entries]


def make_spans(entries: Sequence[LedgerStep], end: datetime) -> list[Span]:
    """Make the reservations among ``entries`` (oldest first), each until it was opened or voided."""
    opened: dict[str, Span] = {}
    spans = list[Span]()
    before = entries[0].epsilon_after if entries else 0.0
    for entry in entries:
        if entry.kind == "reserved" and entry.job_id is not None:
            opened[entry.job_id] = Span(entry.at, end, min(before, entry.epsilon_after), entry.epsilon_after)
        elif entry.kind in {"opened", "voided"} and (span := opened.pop(entry.job_id or "", None)) is not None:
            spans.append(Span(span.start, entry.at, span.low, span.high))
        before = entry.epsilon_after
    return [*spans, *opened.values()]


def count_refusals(counts: Iterable[tuple[datetime, int]]) -> list[Refusals]:
    """Make the marks of refused jobs, oldest first."""
    return [Refusals(at, count) for at, count in sorted(counts)]


def write_csv(pages: Iterable[Iterable[EntryRow]]) -> Iterator[str]:
    """Write rows as CSV (RFC 4180), page by page. No cell starts like a formula."""
    yield _write_lines([_HEADER])
    for rows in pages:
        yield _write_lines(map(_make_line, rows))


def _make_line(row: EntryRow) -> Sequence[object]:
    entry = row.entry
    job = (entry.job_id or "", row.key_id, row.submitter, row.purpose, row.model, row.release_id or "")
    cells = map(_disarm, (entry.kind, *job))
    return (entry.sequence, entry.at.isoformat(), *cells, entry.epsilon_after, entry.entry_hash)


def _write_lines(lines: Iterable[Sequence[object]]) -> str:
    text = io.StringIO()
    csv.writer(text).writerows(lines)
    return text.getvalue()


def _disarm(cell: str) -> str:
    return f"'{cell}" if cell.startswith(_FORMULA) else cell
