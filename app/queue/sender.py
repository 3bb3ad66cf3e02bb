"""Celery as API and worker share it: one queue, JSON, no results, no remote control; and the sender of messages."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final

import structlog
from celery import Celery, group

from app.queue import TASKS_QUEUE
from app.queue.files import folder_options
from app.tracing import span

FILESYSTEM: Final = "filesystem://"
_CONNECT_SECONDS: Final = 2.0


def celery_settings(broker_url: str, data_dir: Path) -> dict[str, Any]:
    """The configuration of every Celery application of the service.

    ``data_dir`` is where the filesystem broker keeps its messages; other brokers do not look at it.
    """
    local = broker_url.startswith(FILESYSTEM)
    return {
        "broker_url": f"{FILESYSTEM}localhost" if local else broker_url,  # kombu warns of a URL without a host
        "broker_transport": "app.queue.files:Transport" if local else None,
        "broker_transport_options": folder_options(data_dir) if local else {},
        "broker_connection_retry_on_startup": True,
        "broker_connection_max_retries": None,
        "result_backend": None,
        "task_ignore_result": True,
        "task_default_queue": TASKS_QUEUE,
        "task_acks_late": True,
        "task_serializer": "json",
        "accept_content": ["json"],
        "worker_prefetch_multiplier": 1,
        "worker_enable_prefetch_count_reduction": False,
        "worker_enable_remote_control": False,
        "worker_send_task_events": False,
        "worker_hijack_root_logger": False,
        "enable_utc": True,
    }


class CeleryQueue:
    """Sends task names and ids; a broker that is away costs time only, since the sweeper sends again."""

    def __init__(self, broker_url: str, data_dir: Path) -> None:
        self._celery = Celery("corevault", set_as_current=False, fixups=[])
        self._celery.conf.update(celery_settings(broker_url, data_dir))
        self._celery.conf.broker_connection_timeout = _CONNECT_SECONDS
        if broker_url.startswith(("redis", "rediss")):
            timeouts = {"socket_connect_timeout": _CONNECT_SECONDS, "socket_timeout": _CONNECT_SECONDS}
            self._celery.conf.broker_transport_options = timeouts

    def send(self, task: str, identifier: str) -> None:
        """Send ``task`` for the row ``identifier``; never raises for a broker that is away."""
        self._send(task, lambda: self._celery.send_task(task, args=[identifier], retry=False, ignore_result=True))

    def answers(self) -> bool:
        """Whether the broker takes messages at the moment."""
        try:
            with self._celery.connection_for_write() as connection:
                connection.ensure_connection(max_retries=1, timeout=_CONNECT_SECONDS)
        except Exception:  # noqa: BLE001  (every broker library fails in its own classes)
            return False
        return True

    def send_group(self, task: str, identifiers: Sequence[str]) -> None:
        """Send ``task`` for each identifier, as a Celery group; never raises for a broker that is away."""
        each = (self._celery.signature(task, args=[identifier], ignore_result=True) for identifier in identifiers)
        self._send(task, lambda: group(each, app=self._celery).apply_async(retry=False))

    def _send(self, task: str, attempt: Callable[[], object]) -> None:
        try:
            with span("queue.send", task=task):
                attempt()
        except Exception as error:  # noqa: BLE001  (every broker library fails in its own classes)
            structlog.get_logger().warning("message not sent", task=task, kind=type(error).__name__)

    def close(self) -> None:
        self._celery.close()
