"""How soon a job runs again whose worker was killed, on PostgreSQL and Redis with default settings.

``python -m tests.faults.recovery``: the process that carries the job is killed, then the whole worker; what is printed
are the seconds from SIGKILL until another process has claimed the job.
"""

import os
import signal
import sys
import tempfile
import time
from pathlib import Path

from app.db import make_engine
from app.db.migrations import upgrade
from tests.factories.servers import Postgres, Redis
from tests.factories.worker import job_body
from tests.faults.real import Real, until
from tests.faults.test_killed_worker import children

LONG = {"noise_multiplier": 6000.0, "sampling_rate": 1.0, "iterations": 60_000}
DEFAULTS = {"LEASE_SECONDS": "10", "HEARTBEAT_SECONDS": "2", "SWEEP_SECONDS": "1"}
REPEATS = 3


def seconds_until_claimed(real: Real, dataset_id: str, whom: str, name: str) -> float:
    """From the kill to the next claim; the worker that has the job is told by its child, which is busy."""
    job_id = real.submit(job_body(dataset_id, privacy=LONG), name)
    until(lambda: real.read(job_id).steps_done > 0 or None, "it runs")
    attempt, killed = real.read(job_id).attempts, time.monotonic()
    for worker in real.workers:
        pids = children(worker.process.pid) if whom == "child" else [worker.process.pid]
        for pid in pids:
            os.kill(pid, signal.SIGKILL)
    until(lambda: real.read(job_id).attempts > attempt or None, "it runs again")
    took = time.monotonic() - killed
    real.call("POST", f"/v1/jobs/{job_id}/cancel")
    real.wait(job_id)
    return took


def main() -> None:
    with tempfile.TemporaryDirectory() as folder, Postgres() as postgres, Redis() as redis:
        engine = make_engine(postgres.url)
        upgrade(engine)
        engine.dispose()
        with Real(Path(folder), postgres.url, {"BROKER_URL": redis.url(), **DEFAULTS}) as real:
            dataset_id = real.ready_dataset()
            for whom in ("child", "all workers"):
                took = [seconds_until_claimed(real, dataset_id, whom, f"{whom[0]}-{n}") for n in range(REPEATS)]
                sys.stdout.write(f"{whom} killed: runs again after {', '.join(f'{each:.1f}' for each in took)} s\n")


if __name__ == "__main__":
    main()
