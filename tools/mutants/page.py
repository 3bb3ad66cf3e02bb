"""Renders the page of mutants from the records of a run."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from benchmarks.environment import describe
from benchmarks.summaries import render_rows, wrap_paragraph
from tools.mutants.records import CAUGHT, Record

PAGE: Final = """# Mutants of the promises

{text}

{circumstances}

## Kill rate
{rate}

{promises}

## Survivors
{survivors}

## Without a record
{missing}

## Smallest defects
{about_smallest}

{smallest}

## All mutants
{mutants}

## Breaks that are not mutants
{others}
"""
_TEXT: Final = (
    "Written by `make mutants`. A mutant is a small break of one [promise](../privacy.md#promises), in a copy of the "
    "code. Its *catcher* is a test, a check or an audit that must fail on it, with a message that names the promise. "
    "All catchers succeed on the unchanged code. Each mutant was written with its catcher, and new tests were added "
    "where none caught it. So the kill rate states that these breaks are caught, and is no estimate for other breaks. "
    "Every record, with the commit before its run: [mutants.csv](mutants.csv)."
)
_SMALLEST: Final = (
    "These mutants have the smallest changes of noise, clipping, sampling and prices. "
    "[Gentle breaks](../audit.md#gentle-breaks) has the number of answers after which audits find breaks of the noise, "
    "the clipping norm and the sampling rate. Smaller changes were not tried."
)


def render_page(
    records: Sequence[Record],
    missing: Sequence[str],
    *,
    smallest: Sequence[str],
    others: Mapping[str, str],
    circumstances: Mapping[str, str],
) -> str:
    """Render the page.

    Args:
        records: of the mutants that were run.
        missing: names of the mutants without a record.
        smallest: names of the smallest mutants.
        others: breaks that are no mutants, with their reasons.
        circumstances: of the run.
    """
    caught = [each for each in records if each.verdict == CAUGHT]
    missed = [each for each in records if each.verdict != CAUGHT]
    rate = (
        f"{len(caught)} of {len(records)} mutants are caught: {100 * len(caught) / len(records):.1f} %. {len(missing)} "
        f"others have no record. {len(others)} further breaks are not mutants, for the reasons below."
    )
    return PAGE.format(
        text=wrap_paragraph(_TEXT),
        circumstances=wrap_paragraph(describe(circumstances)),
        rate=wrap_paragraph(rate),
        promises=_render_promises(records),
        survivors="\n".join(f"- {each.promise}, {each.mutant}: {each.verdict}" for each in missed) or "None.",
        missing="\n".join(f"- {name}" for name in missing) or "None.",
        about_smallest=wrap_paragraph(_SMALLEST),
        smallest=_render(
            ("promise", "mutant", "catcher", "verdict"), [each for each in records if each.mutant in smallest]
        ),
        mutants=_render(("promise", "mutant", "file", "catcher", "verdict", "seconds"), records),
        others="\n".join(f"- {name}: {reason}." for name, reason in others.items()),
    )


def _render_promises(records: Sequence[Record]) -> str:
    """Render the number of mutants and catchers of each promise."""
    rows = []
    for promise in sorted({each.promise for each in records}, key=lambda name: int(name[1:])):
        mine = [each for each in records if each.promise == promise]
        caught = sum(each.verdict == CAUGHT for each in mine)
        rows.append([promise, *map(str, (len(mine), caught, len({each.catcher for each in mine})))])
    return render_rows(("promise", "mutants", "caught", "catchers"), rows).rstrip()


def _render(columns: Sequence[str], records: Iterable[Record]) -> str:
    return render_rows(columns, [[_show(each, column) for column in columns] for each in records]).rstrip()


def _show(record: Record, column: str) -> str:
    if column == "seconds":
        return f"{record.seconds:.1f}"
    text = str(getattr(record, column))
    if column == "catcher":
        text = text.rpartition("::")[2] if record.verdict == CAUGHT and "::" in text else text
    return f"`{text}`" if column in {"file", "catcher"} else text
