"""``corevault-worker``: one Celery worker, with the sweeper in its parent process."""

import os
import signal
import sys
import threading
from typing import Any

import structlog
from celery import signals

from app.config import Settings
from app.http.logs import configure_logs
from workers.celery_app import Workshop, make_celery, make_sweeper, make_workshop
from workers.process import STOP_SECONDS, die_with_parent, exit_after, forbid_core_dumps
from workers.tasks import register

_workshops: dict[int, Workshop] = {}


def main() -> None:
    """Work until asked to stop. Settings come from the environment (``COREVAULT_…``)."""
    settings = Settings()
    os.umask(0o077)
    forbid_core_dumps()
    configure_logs(settings.log_level)
    parent = os.getpid()

    def start_child(**_: Any) -> None:
        die_with_parent(parent)
        _workshops[os.getpid()] = make_workshop(settings)

    stop = threading.Event()
    sweeper = threading.Thread(
        target=make_sweeper(settings).run, args=(settings.sweep_seconds, stop), name="sweeper", daemon=True
    )
    celery = make_celery(settings)
    register(celery, lambda: _workshops[os.getpid()])
    signals.setup_logging.connect(_keep_our_logs, weak=False)
    signals.worker_process_init.connect(start_child, weak=False)
    signals.worker_ready.connect(_ready, weak=False)
    signals.worker_shutting_down.connect(_stopping, weak=False)
    worker = celery.Worker(
        pool="prefork", without_gossip=True, without_mingle=True, without_heartbeat=True, quiet=True, beat=False
    )
    sweeper.start()
    try:
        worker.start()
    finally:
        stop.set()
        sweeper.join(STOP_SECONDS)
    sys.exit(worker.exitcode)


def _keep_our_logs(**_: Any) -> None:
    """Celery configures no logging where somebody listens here."""


def _ready(**_: Any) -> None:
    signal.signal(signal.SIGHUP, signal.getsignal(signal.SIGTERM))  # a terminal that closes must leave nothing behind
    structlog.get_logger().info("worker ready")


def _stopping(**_: Any) -> None:
    exit_after(STOP_SECONDS)
