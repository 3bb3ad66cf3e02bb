"""Validates messages before Celery handles them.

Celery trusts the content of messages: a message with malformed headers or a malformed body ends its worker. The broker
then delivers the message, which was not acknowledged, to the next worker. So anybody with access to the broker could
stop all workers. Therefore a message is checked first, and only the task's name is kept of its headers.
"""

import json
import logging
import re
import uuid
from collections.abc import Callable
from typing import Any

import structlog
from celery.worker import consumer
from vine import promise

from app.queue import INGEST_CONTENT, RUN_JOB, SUM_PARTITION

JSON = "application/json"
TASKS = (RUN_JOB, INGEST_CONTENT, SUM_PARTITION)
_IDENTIFIER = re.compile(r"[a-z]{1,8}_[0-9a-z]{1,64}(:[0-9]{1,9}){0,3}")


def parse_identifier(arguments: object, named: object) -> str | None:
    """Return the id that is the only argument of a task; None for other arguments."""
    match arguments:
        case [str(identifier)] if not named and _IDENTIFIER.fullmatch(identifier):
            return identifier
        case _:
            return None


def parse_message(message: Any) -> tuple[str, str] | None:
    """Return the task and the id of a valid message; None for an invalid one."""
    try:
        task, (arguments, named, _) = message.headers["task"], message.decode()
    except Exception:  # noqa: BLE001  (a foreign message may raise any error)
        return None
    identifier = parse_identifier(arguments, named)
    return None if identifier is None or task not in TASKS else (task, identifier)


def rewrite(message: Any, task: str, identifier: str) -> None:
    """Replace all parts of the message by a call of ``task`` with ``identifier``."""
    new_id = str(uuid.uuid4())
    message.headers = {
        "task": task,
        "id": new_id,
        "root_id": new_id,
        "lang": "py",
        "retries": 0,
        "timelimit": [None, None],
    }
    message.body, message.content_type, message.content_encoding = json.dumps([[identifier], {}, {}]), JSON, "utf-8"
    message.properties = {"delivery_tag": message.delivery_tag}
    message._decoded_cache = None  # noqa: SLF001  (no public method clears the cache of the old body)


class Consumer(consumer.Consumer):  # type: ignore[misc]  # Celery is untyped, and so are its messages
    """A Celery consumer that ignores invalid messages."""

    def create_task_handler(self, promise: Any = promise) -> Callable[[Any], None]:
        """Make the handler of Celery, called for valid messages only."""
        handle = super().create_task_handler(promise)

        def on_task_received(message: Any) -> None:
            call = parse_message(message)
            if call is None:
                structlog.get_logger().warning("message ignored")
                message.reject_log_error(logging.getLogger(__name__), self.connection_errors)
                return
            rewrite(message, *call)
            handle(message)

        return on_task_received
