"""One Celery worker, with the sweeper in its parent process."""

import os
import signal
import sys
import threading
import time
import warnings
from contextlib import suppress
from multiprocessing.util import get_temp_dir
from pathlib import Path
from typing import Any

import structlog
from celery import signals
from celery.apps import worker as celery_worker
from celery.exceptions import SecurityWarning
from celery.worker import state

from app import tracing
from app.collector import ignore_present_objects
from app.config import Settings
from app.http.middleware.logs import configure_logs
from workers.celery_app import TaskHandlers, make_celery, make_sweeper, make_task_handlers
from workers.process import StopFlag, die_with_parent, forbid_core_dumps
from workers.tasks import register

FINISH_SECONDS = 5.0
"""How long runs may continue after a worker was asked to stop, before they are handed over."""
STOP_SECONDS = 10.0
"""The longest time to stop. A run that reaches no step by then is re-queued once its lease expires."""

_handlers: dict[int, TaskHandlers] = {}


def work(settings: Settings) -> None:
    """Work until a signal asks to stop; then end this process."""
    warnings.filterwarnings("ignore", category=SecurityWarning)  # it is about options that this worker does not have
    os.umask(0o077)
    forbid_core_dumps()
    configure_logs(settings.log_level)
    parent = os.getpid()

    def start_child(**_: Any) -> None:
        die_with_parent(parent)
        signal.signal(signal.SIGTERM, signal.SIG_IGN)  # a signal to the whole group is for the first process only
        tracing.configure(settings.otlp_endpoint, "corevault-worker")  # not before the fork: it starts a thread
        handlers = _handlers[os.getpid()] = make_task_handlers(settings, stop_flag.is_set)
        if handlers.auditor is not None:
            threading.Thread(target=handlers.auditor.run, args=(threading.Event(),), name="audit", daemon=True).start()

    def shut_down(**_: Any) -> None:
        threading.Thread(
            target=_shut_down, args=(sweeper, stop, stop_flag, folder), name="shutdown", daemon=True
        ).start()

    stop, stop_flag = threading.Event(), StopFlag()
    folder = get_temp_dir()  # the pool's; after its removal at the stop, this call would make a new one
    sweeper = threading.Thread(
        target=make_sweeper(settings).run, args=(settings.sweep_seconds, stop), name="sweeper", daemon=True
    )
    celery = make_celery(settings)
    register(celery, lambda: _handlers[os.getpid()])
    celery_worker.safe_say = _print_nothing
    signals.setup_logging.connect(_keep_logging_as_is, weak=False)
    signals.worker_process_init.connect(start_child, weak=False)
    signals.worker_ready.connect(_announce_ready, weak=False)
    signals.worker_shutting_down.connect(shut_down, weak=False)
    worker = celery.Worker(
        pool="prefork", without_gossip=True, without_mingle=True, without_heartbeat=True, quiet=True, beat=False
    )
    sweeper.start()
    ignore_present_objects()  # before the fork
    worker.start()
    sys.exit(worker.exitcode)


def _keep_logging_as_is(**_: Any) -> None:
    """Do nothing: Celery configures no logging if this signal has a receiver."""


def _print_nothing(*_: Any) -> None:
    """Replace the function with which Celery writes to the terminal at a stop; the log has that line."""


def _announce_ready(**_: Any) -> None:
    signal.signal(signal.SIGHUP, signal.getsignal(signal.SIGTERM))  # also stop when the terminal closes
    structlog.get_logger().info("worker ready")


def _shut_down(sweeper: threading.Thread, stop: threading.Event, stop_flag: StopFlag, folder: str) -> None:
    """End this process and its children once no task runs.

    This takes at most ``STOP_SECONDS``. Another worker repeats tasks that have not ended by then.
    """
    structlog.get_logger().info("worker is stopping")
    started = time.monotonic()
    deadline = started + STOP_SECONDS
    while state.reserved_requests and time.monotonic() < deadline:
        if time.monotonic() > started + FINISH_SECONDS:
            stop_flag.set()
        time.sleep(0.05)
    stop.set()
    sweeper.join(deadline + 1 - time.monotonic())
    with suppress(OSError):
        Path(folder).rmdir()  # empty by now, if it is the worker's own; ``os._exit`` skips the library's clean-up
    os._exit(0)
