"""The tasks: an id comes in, nothing goes out. Names and arguments never change in one step: messages are in flight."""

from collections.abc import Callable

import structlog
from celery import Celery

from app.queue import INGEST_CONTENT, RUN_JOB, SUM_PARTITION
from workers.celery_app import Workshop


def register(celery: Celery, workshop: Callable[[], Workshop]) -> None:
    """Make ``celery`` answer the tasks with this process's workshop."""

    def run_job(job_id: str) -> None:
        _guarded(RUN_JOB, lambda: workshop().runner.run(job_id))

    def ingest_content(content_id: str) -> None:
        _guarded(INGEST_CONTENT, lambda: workshop().ingestion.run(content_id))

    def sum_partition(part_id: str) -> None:
        _guarded(SUM_PARTITION, lambda: workshop().helper.run(part_id))

    celery.task(run_job, name=RUN_JOB)
    celery.task(ingest_content, name=INGEST_CONTENT)
    celery.task(sum_partition, name=SUM_PARTITION)


def _guarded(task: str, run: Callable[[], None]) -> None:
    """Keep exceptions away from Celery, which would log what they say: the row's lease decides what happens next."""
    try:
        run()
    except Exception:  # noqa: BLE001  (nothing of a task's exception may be known)
        structlog.get_logger().error("task failed", task=task)
