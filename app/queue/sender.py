"""The Celery configuration that API and worker share, and the sender of messages.

There is one queue, with JSON messages, and without results and remote control.
"""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final

import structlog
from celery import Celery, group

from app.queue import TASKS_QUEUE
from app.queue.files import prepare_folders
from app.tracing import open_span

FILESYSTEM: Final = "filesystem://"
_CONNECT_SECONDS: Final = 2.0


def make_celery_settings(broker_url: str, data_dir: Path) -> dict[str, Any]:
    """Return the configuration of every Celery application of the service.

    Args:
        broker_url: URL of the broker.
        data_dir: the folder in which the filesystem broker keeps its messages.
    """
    local = broker_url.startswith(FILESYSTEM)
    return {
        "broker_url": f"{FILESYSTEM}localhost" if local else broker_url,  # kombu warns of a URL without a host
        "broker_transport": "app.queue.files:Transport" if local else None,
        "broker_transport_options": prepare_folders(data_dir) if local else {},
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
    """Sends task names and ids. If the broker does not answer, the sweeper sends them again later."""

    def __init__(self, broker_url: str, data_dir: Path) -> None:
        self._celery = Celery("corevault", set_as_current=False, fixups=[])
        self._celery.conf.update(make_celery_settings(broker_url, data_dir))
        self._celery.conf.broker_connection_timeout = _CONNECT_SECONDS
        if broker_url.startswith(("redis", "rediss")):
            timeouts = {"socket_connect_timeout": _CONNECT_SECONDS, "socket_timeout": _CONNECT_SECONDS}
            self._celery.conf.broker_transport_options = timeouts

    def send(self, task: str, identifier: str) -> None:
        """Send ``task`` for the row ``identifier``; a broker that does not answer raises nothing."""
        self._send(task, lambda: self._celery.send_task(task, args=[identifier], retry=False, ignore_result=True))

    def answers(self) -> bool:
        """Return whether the broker accepts messages now."""
        try:
            with self._celery.connection_for_write() as connection:
                connection.ensure_connection(max_retries=1, timeout=_CONNECT_SECONDS)
        except Exception:  # noqa: BLE001  (every broker library has separate exceptions)
            return False
        return True

    def send_group(self, task: str, identifiers: Sequence[str]) -> None:
        """Send ``task`` for each identifier, as a Celery group; a broker that does not answer raises nothing."""
        each = (self._celery.signature(task, args=[identifier], ignore_result=True) for identifier in identifiers)
        self._send(task, lambda: group(each, app=self._celery).apply_async(retry=False))

    def _send(self, task: str, attempt: Callable[[], object]) -> None:
        try:
            with open_span("queue.send", task=task):
                attempt()
        except Exception as error:  # noqa: BLE001  (every broker library has separate exceptions)
            structlog.get_logger().warning("message not sent", task=task, kind=type(error).__name__)

    def close(self) -> None:
        self._celery.close()
