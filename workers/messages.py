"""Takes nothing from the broker but messages that look as ours do.

Celery believes much of what a message says: one with odd headers or an odd body ends its worker, and a broker that
keeps what was not acknowledged hands it to the next one. Whoever reaches the broker could stop all of them that way. So
a message is judged before Celery looks at it, and of its headers nothing is kept but the name of the task.
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


def identifier_of(arguments: object, named: object) -> str | None:
    """The id that is all that one of our tasks is called with; None for anything else."""
    match arguments:
        case [str(identifier)] if not named and _IDENTIFIER.fullmatch(identifier):
            return identifier
        case _:
            return None


def ours(message: Any) -> tuple[str, str] | None:
    """Task and id of a message that we could have sent; None for any other."""
    try:
        task, (arguments, named, _) = message.headers["task"], message.decode()
    except Exception:  # noqa: BLE001  (whatever is wrong with it)
        return None
    identifier = identifier_of(arguments, named)
    return None if identifier is None or task not in TASKS else (task, identifier)


def rewrite(message: Any, task: str, identifier: str) -> None:
    """Make the message say that and nothing else."""
    own = str(uuid.uuid4())
    message.headers = {"task": task, "id": own, "root_id": own, "lang": "py", "retries": 0, "timelimit": [None, None]}
    message.body, message.content_type, message.content_encoding = json.dumps([[identifier], {}, {}]), JSON, "utf-8"
    message.properties = {"delivery_tag": message.delivery_tag}
    message._decoded_cache = None  # noqa: SLF001  (there is no other way to say that the body is a new one)


class Consumer(consumer.Consumer):  # type: ignore[misc]  # Celery is untyped, and so are its messages
    """What a worker takes its messages with."""

    def create_task_handler(self, promise: Any = promise) -> Callable[[Any], None]:
        """As Celery's, for messages that are ours."""
        handle = super().create_task_handler(promise)

        def on_task_received(message: Any) -> None:
            found = ours(message)
            if found is None:
                structlog.get_logger().warning("message ignored")
                message.reject_log_error(logging.getLogger(__name__), self.connection_errors)
                return
            rewrite(message, *found)
            handle(message)

        return on_task_received
