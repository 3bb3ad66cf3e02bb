"""W8 to W11 under 300 runs of everything that can go wrong, each from a seed; a failing one says which.

``python -m tests.faults.seeded --seed N`` replays it.
"""

from pathlib import Path

import pytest

from app.db import Database
from tests.factories import stack
from tests.faults.seeded import BATCH, batch

RUNS = 100 if stack.on_services() else 300


@pytest.mark.parametrize("begin", range(0, RUNS, BATCH))
def test_whatever_goes_wrong_the_books_are_right_and_every_job_ends(
    begin: int, database: Database, tmp_path: Path
) -> None:
    batch(range(begin, begin + BATCH), database, tmp_path)
