"""The tasks: an id comes in, nothing goes out. Names and arguments never change in one step: messages are in flight.

Whoever reaches the broker can send anything. A message is worth no more than the id in it, which must look like one.
"""

from collections.abc import Callable

import structlog
from celery import Celery

from app.queue import INGEST_CONTENT, RUN_JOB, SUM_PARTITION
from workers.celery_app import Workshop
from workers.messages import identifier_of


def register(celery: Celery, workshop: Callable[[], Workshop]) -> None:
    """Make ``celery`` answer the tasks with this process's workshop."""
    _register(celery, RUN_JOB, lambda: workshop().runner.run)
    _register(celery, INGEST_CONTENT, lambda: workshop().ingestion.run)
    _register(celery, SUM_PARTITION, lambda: workshop().helper.run)


def _register(celery: Celery, name: str, found: Callable[[], Callable[[str], None]]) -> None:
    def task(*arguments: object, **named: object) -> None:
        identifier = identifier_of(arguments, named)
        if identifier is None:
            structlog.get_logger().warning("message ignored", task=name)
        else:
            _guard(name, lambda: found()(identifier))

    celery.task(task, name=name, typing=False, shared=False)


def _guard(task: str, run: Callable[[], None]) -> None:
    """Keep exceptions away from Celery, which would log what they say: the row's lease decides what happens next."""
    try:
        run()
    except Exception:  # noqa: BLE001  (nothing of a task's exception may be known)
        structlog.get_logger().error("task failed", task=task)
