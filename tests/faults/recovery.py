"""Measures how soon a job runs again after its worker was killed.

``python -m tests.faults.recovery`` uses PostgreSQL and Redis with default settings. It kills the process that runs the
job, then its whole worker while another worker lives, then all workers, which are restarted at once. It prints the
seconds from SIGKILL until another process has claimed the job.
"""

import sys
import tempfile
import time
from pathlib import Path

from app.db import make_engine
from app.db.migrations import upgrade
from support.processes import kill
from support.servers import Postgres, Redis
from tests.factories.worker import job_body
from tests.faults.process import execute
from tests.faults.real import Real, Supervised, until
from tests.faults.test_killed_worker import children

LONG = {"noise_multiplier": 6000.0, "sampling_rate": 1.0, "iterations": 60_000}
DEFAULTS = {"LEASE_SECONDS": "10", "HEARTBEAT_SECONDS": "2", "SWEEP_SECONDS": "1"}
REPEATS = 3


def measure_recovery(real: Real, dataset_id: str, target: str, name: str) -> float:
    """Kill ``target``; return the seconds to the next claim.

    The worker that has the job is the one with a busy child.
    """
    job_id = real.submit(job_body(dataset_id, privacy=LONG), name)
    until(lambda: real.read(job_id).steps_done > 0 or None, "it runs")
    attempt, killed = real.read(job_id).attempts, time.monotonic()
    busy = [worker for worker in real.workers if target == "all workers" or is_busy(worker)]
    for worker in busy or real.workers:
        kill(children(worker.process.pid) if target == "child" else [worker.process.pid])
    until(lambda: real.read(job_id).attempts > attempt or None, "it runs again")
    seconds = time.monotonic() - killed
    real.call("POST", f"/v1/jobs/{job_id}/cancel")
    real.wait(job_id)
    return seconds


def is_busy(worker: Supervised) -> bool:
    """Whether a child of the worker computes; children of the other worker wait."""
    deadline = time.monotonic() + 1
    while time.monotonic() < deadline:
        if any(_computes(child) for child in children(worker.process.pid)):
            return True
    return False


def _computes(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] == "R"
    except (FileNotFoundError, ProcessLookupError):
        return False


def main() -> None:
    with tempfile.TemporaryDirectory() as folder, Postgres() as postgres, Redis() as redis:
        engine = make_engine(postgres.url)
        upgrade(engine)
        engine.dispose()
        with Real(Path(folder), postgres.url, {"BROKER_URL": redis.url(), **DEFAULTS}, start=execute) as real:
            dataset_id = real.ready_dataset()
            for target in ("child", "worker", "all workers"):
                names = [f"{target.replace(' ', '-')}-{number}" for number in range(REPEATS)]
                seconds = [measure_recovery(real, dataset_id, target, name) for name in names]
                sys.stdout.write(
                    f"{target} killed: runs again after {', '.join(f'{each:.1f}' for each in seconds)} s\n"
                )


if __name__ == "__main__":
    main()
