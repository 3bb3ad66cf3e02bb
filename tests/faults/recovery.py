"""How soon a job runs again whose worker was killed, on PostgreSQL and Redis with default settings.

``python -m tests.faults.recovery``: the process that carries the job is killed, then its whole worker while another one
lives, then all workers, which are started again at once. What is printed are the seconds from SIGKILL until another
process has claimed the job.
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
from tests.faults.real import Kept, Real, until
from tests.faults.test_killed_worker import children

LONG = {"noise_multiplier": 6000.0, "sampling_rate": 1.0, "iterations": 60_000}
DEFAULTS = {"LEASE_SECONDS": "10", "HEARTBEAT_SECONDS": "2", "SWEEP_SECONDS": "1"}
REPEATS = 3


def seconds_until_claimed(real: Real, dataset_id: str, whom: str, name: str) -> float:
    """From the kill to the next claim; the worker that has the job is told by its child, which is busy."""
    job_id = real.submit(job_body(dataset_id, privacy=LONG), name)
    until(lambda: real.read(job_id).steps_done > 0 or None, "it runs")
    attempt, killed = real.read(job_id).attempts, time.monotonic()
    busy = [worker for worker in real.workers if whom == "all workers" or at_work(worker)]
    for worker in busy or real.workers:
        kill(children(worker.process.pid) if whom == "child" else [worker.process.pid])
    until(lambda: real.read(job_id).attempts > attempt or None, "it runs again")
    took = time.monotonic() - killed
    real.call("POST", f"/v1/jobs/{job_id}/cancel")
    real.wait(job_id)
    return took


def at_work(worker: Kept) -> bool:
    """Whether a child of the worker computes; the other worker's wait."""
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
        with Real(Path(folder), postgres.url, {"BROKER_URL": redis.url(), **DEFAULTS}) as real:
            dataset_id = real.ready_dataset()
            for whom in ("child", "worker", "all workers"):
                names = [f"{whom.replace(' ', '-')}-{number}" for number in range(REPEATS)]
                took = [seconds_until_claimed(real, dataset_id, whom, name) for name in names]
                sys.stdout.write(f"{whom} killed: runs again after {', '.join(f'{each:.1f}' for each in took)} s\n")


if __name__ == "__main__":
    main()
