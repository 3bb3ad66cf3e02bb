"""The page of the privacy audit: runs its sections, stores the records, and writes ``docs/audit.md``.

``python -m benchmarks.audit`` runs everything, and writes the page and the summary in ``docs/privacy.md``. ``--section
NAME`` runs some sections only and keeps the stored records of the others. ``--size '{"runs": 24}'`` changes sizes, for
a shorter run. ``--page`` writes both from stored records alone.
"""

import argparse
import json
import math
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Final

import numpy as np

from app.inference.audit.report import PAGE, RATE, SECTIONS, VISIBLE, Record, Size, list_tasks
from app.privacy.audit.laws import AnswerLaw, Array64
from app.privacy.audit.sequential import Alternative, LawWatch, find_alarm
from app.privacy.audit.thresholds import ALARM
from benchmarks.audit_page import SHARES, WATCHES, render
from benchmarks.audit_summary import summarise, write_summary

ROOT: Final = Path(__file__).resolve().parents[1]
RECORDS: Final = ROOT / "docs" / "benchmarks" / "audit.json"
DOCUMENT: Final = ROOT / "docs" / "audit.md"
PROMISES: Final = ROOT / "docs" / "privacy.md"
LONG: Final = ("canaries", "releases", "transcripts")
"""Sections that take longest, the longest first."""
_BEYOND: Final = 50.0
"""Answer of a contribution that is not clipped, in clipping norms."""


def list_gentle_breaks() -> Iterator[tuple[str, AnswerLaw, Alternative]]:
    """List gentle breaks, each with the claim of the cell that finds it soonest."""
    full, visible = AnswerLaw(1.0), AnswerLaw(VISIBLE, RATE)
    yield "noise × 0.98", full, Alternative("", replace(full, noise=0.98))
    yield "clipping norm × 1.02", full, Alternative("", replace(full, shift=1.02))
    yield "sampling rate × 1.05", visible, Alternative("", replace(visible, rate=1.05 * RATE))
    yield "one contribution in 1,000 not clipped", full, Alternative("", full, 1e-3)


def measure_detection() -> Iterator[Record]:
    """Measure how many simulated answers the audit needs for each gentle break."""
    rng = np.random.default_rng(0)
    for name, claim, truth in list_gentle_breaks():
        expected = None if truth.outliers else LawWatch(claim).expect_answers(truth)
        found = sorted(_watch(rng, claim, truth, round(8 * (expected or 1e5))) for _ in range(WATCHES))
        yield {
            "break": name,
            "noise": claim.noise,
            "rate": claim.rate,
            "expected": expected,
            "answers": {f"{share:g}": found[math.ceil(share * WATCHES) - 1] for share in SHARES},
            "holds": all(math.isfinite(each) for each in found),
        }


def _watch(rng: np.random.Generator, claim: AnswerLaw, truth: Alternative, most: int) -> float:
    """Watch simulated answers until the alarm; infinity if there is none."""
    watch, done = LawWatch(claim), 0
    while done < most:
        answers, present = draw_answers(rng, truth, 20_000)
        found = find_alarm(watch.add(answers, present), ALARM)
        if found is not None:
            return done + found
        done += 20_000
    return math.inf


def draw_answers(rng: np.random.Generator, truth: Alternative, count: int) -> tuple[Array64, Array64]:
    """Draw aligned answers of a law, with the canary in by a fair coin."""
    law, present = truth.law, rng.integers(0, 2, count).astype(np.float64)
    means = np.where(rng.random(count) < truth.outliers, _BEYOND, law.shift)
    included = present * (rng.random(count) < law.rate)
    return law.noise * rng.standard_normal(count) + means * included, present


def read_records() -> dict[str, list[Record]]:
    """Read the stored records of all sections."""
    return json.loads(RECORDS.read_text()) if RECORDS.exists() else {}


def store(section: str, records: list[Record]) -> None:
    """Replace the stored records of one section."""
    every = read_records() | {section: records}
    lines = [
        f'  "{name}": [\n' + ",\n".join(f"    {_dump(each)}" for each in every[name]) + "\n  ]"
        for name in sorted(every)
    ]
    RECORDS.write_text("{\n" + ",\n".join(lines) + "\n}\n")


def _dump(record: Record) -> str:
    return json.dumps(record, default=float, ensure_ascii=False)


def run_sections(sections: Sequence[str], size: Size, processes: int) -> None:
    """Run sections in separate processes, long ones first; store each when it is complete.

    The last part of a section starts first: among canaries, it has most answers.
    """
    with ProcessPoolExecutor(processes) as pool:
        ordered = sorted(sections, key=lambda name: LONG.index(name) if name in LONG else len(LONG))
        tasks = {
            name: [pool.submit(run_part, name, part, size) for part in reversed(range(count_parts(name)))]
            for name in ordered
        }
        for name, parts in tasks.items():
            found = [record for part in reversed(parts) for record in part.result()]
            for record in found:
                print(name, record, flush=True)
            store(name, found)


def count_parts(section: str) -> int:
    """Count the parts of a section."""
    return 1 if section == "detection" else len(list_tasks(section, PAGE))


def run_part(section: str, part: int, size: Size) -> list[Record]:
    """Run one part of a section."""
    return list(measure_detection()) if section == "detection" else list_tasks(section, size)[part]()


def main() -> int:
    """Run sections, store their records, and write the page; return 1 if a claim is refuted."""
    parser = argparse.ArgumentParser(description="Audit the privacy mechanism, and write docs/audit.md.")
    parser.add_argument("--section", action="append", choices=[*SECTIONS, "detection"], help="run only this section")
    parser.add_argument("--size", type=json.loads, default={}, help="JSON with sizes that replace the usual ones")
    parser.add_argument("--page", action="store_true", help="write the page from stored records")
    parser.add_argument("--processes", type=int, default=2, help="number of processes")
    options = parser.parse_args()
    if not options.page:
        size = replace(PAGE, **options.size)
        run_sections(options.section or [*SECTIONS, "detection"], size, options.processes)
    records = read_records()
    if {*SECTIONS, "detection"} <= records.keys():
        DOCUMENT.write_text(render(records))
        write_summary(PROMISES, summarise(records))
    return int(not all(record["holds"] for each in records.values() for record in each))


if __name__ == "__main__":
    raise SystemExit(main())
