"""W8 to W11 under 200 seeded runs with random faults.

A failing run reports its seed, and ``python -m tests.faults.seeded --seed N`` replays it.
"""

from pathlib import Path

import pytest

from app.db import Database
from tests.faults.seeded import BATCH, run_batch

RUNS, FEW = 200, 60
"""All seeded runs, and the first ones, which are no sweep."""


@pytest.mark.long
@pytest.mark.parametrize(
    "begin", [pytest.param(begin, marks=[pytest.mark.sweep] * (begin >= FEW)) for begin in range(0, RUNS, BATCH)]
)
def test_ledger_is_right_and_every_job_ends_after_random_faults(begin: int, database: Database, tmp_path: Path) -> None:
    run_batch(range(begin, begin + BATCH), database, tmp_path)
