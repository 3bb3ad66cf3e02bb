"""Random requests in batches: ``python -m tests.properties.random_requests --examples 10000``.

Each batch has a seed and a new installation, and prints a line. A batch ends at its first failure, which is
printed with its request; the others go on. ``--first SEED --examples 1`` repeats the batch of one seed; the noise of
its releases is new, because private noise has no seed. Exits with 1 after a failure.
"""

import argparse
import sys
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from multiprocessing import get_context

import structlog
from hypothesis import HealthCheck, Phase, given, seed, settings

from tests.properties.endings import ACCEPTED, CHARGED, FROZEN, RELEASED, check_ending, random_house
from tests.properties.requests import Case, cases

BATCH = 500
"""Examples on one installation. Starting one takes seconds; Hypothesis starts each batch with small ones."""
ASKED, FAILED = "requests", "batches failed"
SHOWN = (ASKED, ACCEPTED, RELEASED, FROZEN, CHARGED, FAILED)


def run_batch(number: int) -> tuple[Counter[str], str]:
    """Try the requests of seed ``number``; return the counts of :data:`SHOWN`, and the failure or an empty string."""
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(50))
    warnings.simplefilter("error")  # as in the tests
    tally, failure = Counter[str](), ""
    with random_house() as (house, owner):

        @seed(number)
        @settings(
            max_examples=BATCH,
            deadline=None,
            database=None,
            phases=[Phase.generate],
            suppress_health_check=list(HealthCheck),
        )
        @given(case=cases())
        def try_requests(case: Case) -> None:
            tally[ASKED] += 1
            check_ending(house, owner, case, tally)

        try:
            try_requests()
        except Exception as error:  # noqa: BLE001  (each one is a finding; other batches go on)
            tally[FAILED] += 1
            failure = "".join(traceback.format_exception(error))
    return tally, failure


def show(tally: Counter[str]) -> str:
    return ", ".join(f"{name} {tally[name]:,}" for name in SHOWN)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--examples", type=int, default=10_000, help=f"rounded up to batches of {BATCH}")
    parser.add_argument("--first", type=int, default=0, help="the first seed; each batch takes the next one")
    parser.add_argument("--processes", type=int, default=2)
    options = parser.parse_args(arguments)
    seeds = range(options.first, options.first + -(-options.examples // BATCH))
    total, started = Counter[str](), time.monotonic()
    with ProcessPoolExecutor(options.processes, get_context("spawn"), max_tasks_per_child=4) as pool:
        batches = {pool.submit(run_batch, number): number for number in seeds}
        for batch in as_completed(batches):
            tally, failure = batch.result()
            total.update(tally)
            sys.stdout.write(f"{failure}seed {batches[batch]}: {show(tally)}\n")
            sys.stdout.flush()
    sys.stdout.write(f"all, in {time.monotonic() - started:.0f} s: {show(total)}\n")
    return 1 if total[FAILED] else 0


if __name__ == "__main__":
    sys.exit(main())
