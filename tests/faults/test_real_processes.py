"""W8 to W11 with real processes, killed and frozen at every named point.

Signals and the broker are real as well.
"""

from collections.abc import Iterator
from itertools import product
from pathlib import Path

import pytest

from app.crashpoints import POINTS
from app.jobs.lifecycle import MAX_ATTEMPTS
from tests.factories.worker import job_body
from tests.faults import invariants
from tests.faults.real import Real

pytestmark = pytest.mark.process

API_POINTS, RUN_POINTS = POINTS[:3], POINTS[3:]
ACTIONS = ("kill", "kill-group", "freeze")
BATCHES = [
    [(API_POINTS[shift], "kill"), *((point, ACTIONS[(place + shift) % 3]) for place, point in enumerate(RUN_POINTS))]
    for shift in range(3)
]
"""Each run point with each action. The API is killed once a batch only, because it takes seconds to restart."""
CHEAP = {"noise_multiplier": 600.0, "sampling_rate": 1.0, "iterations": 30}


@pytest.fixture
def real(database_url: str, broker_settings: dict[str, str], tmp_path: Path) -> Iterator[Real]:
    with Real(tmp_path, database_url, broker_settings) as installation:
        yield installation


def test_orders_are_all_points_with_all_actions() -> None:
    orders = [order for batch in BATCHES for order in batch]
    assert sorted(orders) == sorted([*product(API_POINTS, ["kill"]), *product(RUN_POINTS, ACTIONS)])


@pytest.mark.long
@pytest.mark.timeout(600)
def test_ledger_is_right_after_processes_are_killed_or_frozen(real: Real) -> None:
    """W10: every job ends with one charge and at most one release."""
    dataset_id = real.ready_dataset()
    for number, batch in enumerate(BATCHES):
        job_ids = []
        for point, action in batch:
            real.order(point, action)
            job_ids.append(real.submit(job_body(dataset_id, privacy=CHEAP), f"{number}-{point}-{action}"))
        for order, job_id in zip(batch, job_ids, strict=True):
            job = real.wait(job_id)
            assert job.status == "succeeded" or job.attempts - job.handovers == MAX_ATTEMPTS, (order, job.error_code)
    runs = sum(len(batch) for batch in BATCHES)
    assert len(real.call("GET", f"/v1/jobs?dataset_id={dataset_id}&limit=200").json()["items"]) == runs
    invariants.check(real.database, real.ledger, [dataset_id])
