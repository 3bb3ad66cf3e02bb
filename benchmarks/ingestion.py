"""Ingestion of one CSV file, from its sealed upload to the sealed table.

The process that parses in production parses it here too.
"""

import resource
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from app.inference.core.facts import Column
from support.vault import make_vault
from workers.enclave import Ingested, Limits

ROWS: Final = 4_000_000
COLUMNS: Final[list[dict[str, Any]]] = [
    {"name": "age", "type": "integer", "lower": 17, "upper": 90, "missing": {"impute": 38}},
    {"name": "hours", "type": "real", "lower": 1, "upper": 99},
    {"name": "dose", "type": "real", "lower": -5, "upper": 5},
    {"name": "sex", "type": "categorical", "categories": ["Female", "Male"]},
    {"name": "sick", "type": "binary"},
]


@dataclass(frozen=True, slots=True)
class Rates:
    """Rates of one ingestion in MB of CSV a second.

    One is by the clock, the other by the processor time of the child.
    """

    by_clock: float
    by_processor: float


def measure_ingestion(folder: Path, words_every: int = 0) -> Rates:
    """Ingests ``ROWS`` rows. Every ``words_every``-th row has words instead of numbers; 0 turns that off."""
    columns = [
        Column(each["name"], each["type"], each.get("lower"), each.get("upper"), tuple(each.get("categories", ())))
        for each in COLUMNS
    ]
    lines = (_WORDS if words_every and place % words_every == 0 else _line(place) for place in range(ROWS))
    data = b"age,hours,dose,sex,sick\n" + b"".join(lines)
    vault = make_vault(folder)
    received = vault.receive(data)
    before, started = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    outcome = vault.ingest(received, columns, slots=ROWS, limits=Limits(memory_bytes=2 << 30))
    elapsed, after = time.perf_counter() - started, resource.getrusage(resource.RUSAGE_CHILDREN)
    assert isinstance(outcome, Ingested), outcome
    spent = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return Rates(len(data) / 1e6 / elapsed, len(data) / 1e6 / spent)


_WORDS: Final = b"unknown,unknown,unknown,Male,unknown\n"


def _line(place: int) -> bytes:
    sex = (b"Female", b"Male")[place & 1]
    hours, dose = 1 + (place * 7919 % 98_000) / 1000, (place * 104_729 % 10_000) / 1000 - 5
    return b"%d,%.12f,%.12f,%s,%d\n" % (17 + place % 74, hours, dose, sex, place & 1)
