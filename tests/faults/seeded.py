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
"""Seeds that share an installation: starting one takes as long as a run, and auditing grows with what it has seen."""


def batch(seeds: Iterable[int], database: Database, folder: Path) -> None:
    """Each of the seeds, on a new installation over an empty database; the error that one ends with tells which."""
    lived: list[int] = []
    with Installation(database, folder) as installation:
        for seed in seeds:
            lived.append(seed)
            try:
                live(installation, seed)
            except BaseException as error:  # what those before it left may have a part in it
                error.add_note(f"replay it with those before it: --first {lived[0]} --runs {len(lived)}")
                raise


@contextmanager
def _fresh(folder: Path) -> Iterator[Database]:
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
    parser.add_argument("--seed", type=int, default=None, help="replay this one alone")
    wanted = parser.parse_args()
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(50))
    seeds = [wanted.seed] if wanted.seed is not None else list(range(wanted.first, wanted.first + wanted.runs))
    started = time.monotonic()
    with tempfile.TemporaryDirectory() as root:
        for begin in range(0, len(seeds), BATCH):
            folder = Path(root) / str(begin)
            folder.mkdir()
            with _fresh(folder) as database:
                batch(seeds[begin : begin + BATCH], database, folder)
            shutil.rmtree(folder)
    sys.stdout.write(
        f"{len(seeds)} runs, seeds {seeds[0]} to {seeds[-1]}, {time.monotonic() - started:.0f} s: all held\n"
    )


if __name__ == "__main__":
    main()
