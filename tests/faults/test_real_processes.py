"""W8 to W11 with real processes, real signals and a real broker, killed and frozen at every named point."""

import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from app.crashpoints import POINTS
from app.jobs.lifecycle import MAX_ATTEMPTS
from tests.factories.worker import job_body
from tests.faults import invariants
from tests.faults.real import Real

pytestmark = pytest.mark.process

RUNS, SIDE_BY_SIDE = 30, 6
API_POINTS, RUN_POINTS = POINTS[:3], POINTS[3:]
CHEAP = {"noise_multiplier": 600.0, "sampling_rate": 1.0, "iterations": 30}


@pytest.fixture
def real(database_url: str, broker_settings: dict[str, str], tmp_path: Path) -> Iterator[Real]:
    with Real(tmp_path, database_url, broker_settings) as installation:
        yield installation


@pytest.mark.timeout(600)
def test_wherever_processes_die_or_freeze_the_books_are_right_and_every_job_ends(real: Real) -> None:
    """W10: thirty runs, each with an order by its seed; one charge and one release each, and nothing left behind."""
    dataset_id = real.ready_dataset()
    for begin in range(0, RUNS, SIDE_BY_SIDE):
        seeds = range(begin, begin + SIDE_BY_SIDE)
        job_ids = []
        for seed in seeds:
            real.order(*_order(seed))
            job_ids.append(real.submit(job_body(dataset_id, privacy=CHEAP), f"seed-{seed}"))
        for seed, job_id in zip(seeds, job_ids, strict=True):
            job = real.wait(job_id)
            assert job.status == "succeeded" or job.attempts - job.handovers == MAX_ATTEMPTS, (seed, job.error_code)
    assert len(real.call("GET", f"/v1/jobs?dataset_id={dataset_id}&limit=200").json()["items"]) == RUNS
    invariants.check(real.database, real.ledger, [dataset_id])


def _order(seed: int) -> tuple[str, str]:
    if seed % 10 == 0:  # an API takes seconds to come back
        return API_POINTS[seed // 10], "kill"
    return RUN_POINTS[seed % len(RUN_POINTS)], random.Random(seed).choice(["kill", "kill", "kill-group", "freeze"])
