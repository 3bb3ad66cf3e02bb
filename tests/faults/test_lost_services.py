"""Services that vanish during operation, and hostile messages.

On PostgreSQL, Redis and RabbitMQ.
"""

import os
import signal
import time
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from app.db import make_engine
from app.db.migrations import upgrade
from app.queue import RUN_JOB, TASKS_QUEUE
from support.servers import Postgres, Redis
from tests.factories.worker import job_body
from tests.faults import invariants
from tests.faults.real import Real, Supervised, until

pytestmark = [pytest.mark.services, pytest.mark.timeout(300), pytest.mark.process]
kombu: Any = import_module("kombu")  # untyped
AMQP = os.environ.get("TEST_AMQP_URL", "amqp://guest:guest@127.0.0.1:5672//")
CANARY = "canary-7461"
QUICK = {"noise_multiplier": 600.0, "sampling_rate": 1.0, "iterations": 30}
LONG = QUICK | {"iterations": 3000}


@pytest.fixture
def redis() -> Iterator[Redis]:
    """A server that may be stopped, unlike the shared one."""
    with Redis() as server:
        yield server


@pytest.fixture
def real(database_url: str, redis: Redis, tmp_path: Path) -> Iterator[Real]:
    with Real(tmp_path, database_url, {"BROKER_URL": redis.url()}) as installation:
        yield installation


def wait_until_running(real: Real, job_id: str) -> None:
    """Wait until the job has done at least one step."""
    until(lambda: (real.read(job_id).status, real.read(job_id).steps_done > 0) == ("running", True) or None, "it runs")


def check_success(real: Real, dataset_id: str, *job_ids: str) -> None:
    for job_id in job_ids:
        job = real.wait(job_id)
        assert job.status == "succeeded", job.error_code
    invariants.check(real.database, real.ledger, [dataset_id])


def test_jobs_succeed_after_redis_loses_its_memory(real: Real, redis: Redis) -> None:
    """W10: jobs are accepted while Redis is away, and queued jobs are queued again from the database."""
    dataset_id = real.ready_dataset()
    started = real.submit(job_body(dataset_id, privacy=LONG), "started")
    queued = [real.submit(job_body(dataset_id, privacy=QUICK), f"queued-{number}") for number in range(4)]
    wait_until_running(real, started)
    redis.stop(immediate=True)
    during_outage = real.submit(job_body(dataset_id, privacy=QUICK), "during-outage")
    assert real.read(during_outage).status == "queued"
    redis.start()
    check_success(real, dataset_id, started, *queued, during_outage)


def test_jobs_succeed_after_postgresql_is_shut_down(redis: Redis, tmp_path: Path) -> None:
    """W10, W11: after an immediate shutdown committed entries exist, and the job continues under its reservation."""
    with Postgres(options=("max_connections=100",)) as postgres:
        _migrate(postgres.url)
        with Real(tmp_path, postgres.url, {"BROKER_URL": redis.url()}) as real:
            dataset_id = real.ready_dataset()
            job_id = real.submit(job_body(dataset_id, privacy=LONG), "one")
            wait_until_running(real, job_id)
            postgres.stop(immediate=True)
            time.sleep(2.5)  # longer than a lease
            postgres.start()
            real.database.dispose()
            other = real.submit(job_body(dataset_id, privacy=QUICK), "other")
            check_success(real, dataset_id, job_id, other)


def test_stopped_worker_hands_its_run_over_at_once(real: Real) -> None:
    """W10: after SIGTERM to the whole group another worker runs the job, and no attempt is counted."""
    dataset_id = real.ready_dataset()
    job_id = real.submit(job_body(dataset_id, privacy=LONG | {"iterations": 40_000}), "long")
    wait_until_running(real, job_id)
    for worker in real.workers:
        if real.read(job_id).handovers == 0:  # the first one had nothing to do
            _stop(worker)
    assert real.read(job_id).handovers == 1
    until(lambda: real.read(job_id).attempts == 2 or None, "it runs elsewhere")
    job = real.read(job_id)
    assert (job.attempts, job.handovers) == (2, 1)
    real.call("POST", f"/v1/jobs/{job_id}/cancel")
    assert real.wait(job_id).status == "cancelled"
    invariants.check(real.database, real.ledger, [dataset_id])


def test_frozen_worker_publishes_nothing_when_it_continues(real: Real) -> None:
    """W10: it gets SIGSTOP before publication, and continues after another worker has published."""
    dataset_id = real.ready_dataset()
    real.order("before-publish", "stop")
    job_id = real.submit(job_body(dataset_id, privacy=QUICK), "one")
    check_success(real, dataset_id, job_id)
    job = real.read(job_id)
    assert (job.attempts, job.fencing_token) == (2, 2)
    real.wake()
    time.sleep(2)  # time enough to publish
    check_success(real, dataset_id, job_id)
    assert real.read(job_id).release_id == job.release_id


def test_hostile_messages_are_ignored_and_not_logged(real: Real, redis: Redis) -> None:
    """W3, W10: messages with any types, tasks, ids and encodings do not stop the next job."""
    dataset_id = real.ready_dataset()
    with kombu.Connection(redis.url()) as connection:
        _send_hostile(connection)
    check_success(real, dataset_id, real.submit(job_body(dataset_id, privacy=QUICK), "after"))
    log = (real.folder / "log").read_text()
    assert "message ignored" in log
    assert CANARY not in log
    assert not (real.folder / CANARY).exists()


def test_rabbitmq_works_with_settings_only(database_url: str, tmp_path: Path) -> None:
    with kombu.Connection(AMQP, connect_timeout=5) as connection:
        connection.ensure_connection(max_retries=1)
        with connection.SimpleQueue(TASKS_QUEUE) as queue:
            queue.clear()
    with Real(tmp_path, database_url, {"BROKER_URL": AMQP}) as real:
        dataset_id = real.ready_dataset()
        with kombu.Connection(AMQP) as connection:
            _send_hostile(connection)
        real.order("mid-iteration", "kill")
        job_id = real.submit(job_body(dataset_id, privacy=QUICK), "one")
        check_success(real, dataset_id, job_id)
        assert real.read(job_id).attempts == 2


def _stop(worker: Supervised) -> None:
    """Stop the worker, and wait until another process has replaced it."""
    pid = worker.process.pid
    worker.signal(signal.SIGTERM)
    until(lambda: worker.process.pid != pid or None, "it stops")


class Exploit:
    """Makes a folder when it is unpickled."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[Any, ...]:
        return os.mkdir, (str(self.path),)


def _send_hostile(connection: Any) -> None:
    headers = {"task": RUN_JOB, "id": CANARY, "lang": "py", "root_id": CANARY, "argsrepr": CANARY}
    bodies: list[tuple[Any, dict[str, Any], str]] = [
        ([[7461], {}, None], headers, "json"),
        ([[CANARY], {}, {}], headers, "json"),
        ([[], {"job_id": CANARY}, {}], headers, "json"),
        ([["job_00000000000000000000000000"], {}, {}], headers, "json"),
        (CANARY, headers, "json"),
        ({"task": RUN_JOB, "args": CANARY}, {}, "json"),
        ([[CANARY], {}, {}], headers | {"task": "os.system"}, "json"),
        ([[CANARY], {}, {}], headers | {"task": "celery.chain"}, "json"),
        ([[Exploit(Path(CANARY))], {}, {}], headers, "pickle"),
    ]
    kombu.serialization.enable_insecure_serializers(["pickle"])
    try:
        producer = connection.Producer(serializer="json")
        for body, header, serializer in bodies:
            producer.publish(body, headers=header, serializer=serializer, routing_key=TASKS_QUEUE)
        raw = {"headers": headers, "content_type": "application/json", "content_encoding": "utf-8"}
        producer.publish(f"{{{CANARY}", routing_key=TASKS_QUEUE, serializer=None, **raw)
    finally:
        kombu.serialization.disable_insecure_serializers(["json"])


def _migrate(url: str) -> None:
    engine = make_engine(url)
    upgrade(engine)
    engine.dispose()
