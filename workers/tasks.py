"""The Celery tasks: each takes an id and returns nothing.

Names and arguments of tasks never change in one step, because messages are in flight. Anybody with access to the broker
can send any message. So only the id in a message is used, and only if it has the form of an id.
"""

from collections.abc import Callable

import structlog
from celery import Celery

from app.queue import INGEST_CONTENT, RUN_JOB, SUM_PARTITION
from workers.celery_app import TaskHandlers
from workers.messages import parse_identifier


def register(celery: Celery, get_handlers: Callable[[], TaskHandlers]) -> None:
    """Register the tasks; ``get_handlers`` returns the handlers of the process that runs a task."""
    _register(celery, RUN_JOB, get_handlers, lambda handlers: handlers.runner.run)
    _register(celery, INGEST_CONTENT, get_handlers, lambda handlers: handlers.ingestion.run)
    _register(celery, SUM_PARTITION, get_handlers, lambda handlers: handlers.helper.run)


def _register(
    celery: Celery,
    name: str,
    get_handlers: Callable[[], TaskHandlers],
    choose: Callable[[TaskHandlers], Callable[[str], None]],
) -> None:
    def task(*arguments: object, **named: object) -> None:
        identifier = parse_identifier(arguments, named)
        if identifier is None:
            structlog.get_logger().warning("message ignored", task=name)
        else:
            _guard(name, lambda: _run(get_handlers(), choose, identifier))

    celery.task(task, name=name, typing=False, shared=False)


def _run(handlers: TaskHandlers, choose: Callable[[TaskHandlers], Callable[[str], None]], identifier: str) -> None:
    """Run the task; the continuous audit of this process waits."""
    with handlers.turn:
        choose(handlers)(identifier)


def _guard(task: str, run: Callable[[], None]) -> None:
    """Keep exceptions from Celery, which would log their messages; the lease decides the next step."""
    try:
        run()
    except Exception:  # noqa: BLE001  (an exception of a task may hold data)
        structlog.get_logger().error("task failed", task=task)
