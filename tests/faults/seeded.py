"""Seeded runs in batches: ``python -m tests.faults.seeded --runs 10000``, or ``--seed N`` to replay one."""

import argparse
import shutil
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

import structlog

from app.db import Database, make_engine
from app.db.migrations import upgrade
from tests.faults.world import Installation, live

BATCH = 10
"""Seeds on one installation. Starting one takes as long as a run, but audits become slower with each run."""


def run_batch(seeds: Iterable[int], database: Database, folder: Path) -> None:
    """Run the seeds on a new installation over an empty database.

    An error has a note with the seed.
    """
    started: list[int] = []
    with Installation(database, folder) as installation:
        for seed in seeds:
            started.append(seed)
            try:
                live(installation, seed)
            except BaseException as error:  # earlier seeds may have contributed to it
                error.add_note(f"to replay with the earlier seeds: --first {started[0]} --runs {len(started)}")
                raise


@contextmanager
def _make_database(folder: Path) -> Iterator[Database]:
    database = Database(make_engine(f"sqlite:///{folder}/corevault.sqlite3"))
    upgrade(database.engine)
    try:
        yield database
    finally:
        database.dispose()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=1000)
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--seed", type=int, default=None, help="replay only this seed")
    options = parser.parse_args()
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(50))
    seeds = [options.seed] if options.seed is not None else list(range(options.first, options.first + options.runs))
    started = time.monotonic()
    with tempfile.TemporaryDirectory() as root:
        for begin in range(0, len(seeds), BATCH):
            folder = Path(root) / str(begin)
            folder.mkdir()
            with _make_database(folder) as database:
                run_batch(seeds[begin : begin + BATCH], database, folder)
            shutil.rmtree(folder)
    sys.stdout.write(
        f"{len(seeds)} runs, seeds {seeds[0]} to {seeds[-1]}, {time.monotonic() - started:.0f} s: all held\n"
    )


if __name__ == "__main__":
    main()
