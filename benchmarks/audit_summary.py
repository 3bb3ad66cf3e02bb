"""Summarises the privacy audit, for its page and ``docs/privacy.md``."""

from collections.abc import Sequence
from pathlib import Path
from typing import Final

from app.inference.audit.mechanism import CONFIDENCE, DELTA
from app.inference.audit.report import RATE, Record
from app.privacy.audit.bounds import Counts, bound_rate, bound_separation
from app.privacy.audit.laws import AnswerLaw
from benchmarks.summaries import wrap_paragraph

HALF_EACH: Final = (1 + CONFIDENCE) / 2
"""Confidence of each of two bounds that hold together at :data:`CONFIDENCE`."""
BEGIN: Final = "<!-- written by `make audit` -->"
END: Final = "<!-- end -->"
_INDENT: Final = "  "
"""The summary belongs to an item of a list."""


def share_by_parts(record: Record, sampling: Record) -> float:
    """Compute the shown share at :data:`RATE` by parts.

    ``record`` is of a cell at rate 1, and ``sampling`` of one that shows the rate.
    """
    rate = bound_rate(Counts(*sampling["counts"]), sampling["noise"], HALF_EACH)
    shown = AnswerLaw(1 / bound_separation(Counts(*record["counts"]), HALF_EACH), rate)
    return shown.compute_epsilon(DELTA) / AnswerLaw(record["noise"], RATE).compute_epsilon(DELTA)


def summarise(records: dict[str, list[Record]]) -> str:
    """Summarise the shown shares of all attacks."""
    full = [each for each in records["canaries"] if each["rate"] == 1]
    by_parts = [share_by_parts(each, records["sampling"][0]) for each in full]
    sampled = [each for each in records["canaries"] if each["rate"] == RATE]
    questions, directly, runs, releases = (
        _list_shares(each) for each in (full, sampled, records["transcripts"], records["releases"])
    )
    most = max(*questions, *directly, *by_parts, *runs, *releases)
    verdict = "No share exceeds 100 %." if most <= 1 else "**A share exceeds 100 %.**"
    return (
        f"Shares are of the claimed ε, at {100 * CONFIDENCE:g} % confidence. Attacks on single questions show "
        f"{_describe_range(questions)} at rate 1. At rate {RATE:g} they show {100 * min(directly):.1f} %, and "
        f"{_describe_range(by_parts)} by parts. "
        f"Attacks on whole runs show {_describe_range(runs)}. "
        f"Attacks on the final release alone show {_describe_range(releases)}. {verdict}"
    )


def _list_shares(records: Sequence[Record]) -> list[float]:
    return [each["by_shape"] / each["epsilon"] for each in records]


def _describe_range(shares: Sequence[float]) -> str:
    return f"{100 * min(shares):.1f} % to {100 * max(shares):.1f} %"


def insert_summary(page: str, summary: str) -> str:
    """Replace the summary in ``page`` by this one.

    Raises:
        ValueError: if the page does not have both marks.
    """
    before, begin, rest = page.partition(f"{_INDENT}{BEGIN}\n")
    _, end, after = rest.partition(f"{_INDENT}{END}\n")
    if not (begin and end):
        raise ValueError("the page has no place for the summary of the audit")
    lines = [f"{_INDENT}{line}\n" for line in wrap_paragraph(summary).splitlines()]
    return "".join([before, begin, *lines, end, after])


def write_summary(path: Path, summary: str) -> None:
    """Write the summary into a page."""
    path.write_text(insert_summary(path.read_text(), summary))
