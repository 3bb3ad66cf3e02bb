"""``corevault-worker``: one Celery worker, with the sweeper in its parent process."""

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
from pydantic import ValidationError

from app import tracing
from app.config import Settings, invalid_names
from app.errors import CorevaultError
from app.http.middleware.logs import configure_logs
from workers.celery_app import Workshop, make_celery, make_sweeper, make_workshop, rewrap_keys
from workers.command_line import command_of
from workers.process import StopSign, die_with_parent, forbid_core_dumps
from workers.tasks import register

FINISH_SECONDS = 5.0
"""How long a worker that was asked to stop lets its runs go on, before they are handed over."""
STOP_SECONDS = 10.0
"""How long it takes at most to stop; runs that have not reached another step by then are lost to their lease."""

_workshops: dict[int, Workshop] = {}


def main() -> None:
    """Work until asked to stop; with the argument ``rewrap``, seal keys anew and end (see :mod:`workers.rewrap`).

    Settings come from the environment (``COREVAULT_…``).
    """
    command = command_of(sys.argv[1:])
    try:
        if command == "rewrap":
            _rewrap(Settings())
        else:
            _work(Settings())
    except ValidationError as error:
        sys.exit(f"corevault-worker: these settings are not valid: {invalid_names(error)}")
    except CorevaultError as error:
        sys.exit(f"corevault-worker: {error.detail}")


def _rewrap(settings: Settings) -> None:
    forbid_core_dumps()
    done = rewrap_keys(settings)
    sys.stdout.write(f"{done.sealed_anew} keys sealed again\n")
    if done.uploads_wait:
        sys.exit("uploads that need a retired opening key are still waiting; repeat the command after their ingestion")


def _work(settings: Settings) -> None:
    warnings.filterwarnings("ignore", category=SecurityWarning)  # its advice is about options that we do not have
    os.umask(0o077)
    forbid_core_dumps()
    configure_logs(settings.log_level)
    parent = os.getpid()

    def start_child(**_: Any) -> None:
        die_with_parent(parent)
        signal.signal(signal.SIGTERM, signal.SIG_IGN)  # whoever stops a whole group means the first process
        tracing.configure(settings.otlp_endpoint, "corevault-worker")  # not before the fork: it starts a thread
        _workshops[os.getpid()] = make_workshop(settings, sign.is_up)

    def leave(**_: Any) -> None:
        threading.Thread(target=_leave, args=(sweeper, stop, sign), name="leave", daemon=True).start()

    stop, sign = threading.Event(), StopSign()
    sweeper = threading.Thread(
        target=make_sweeper(settings).run, args=(settings.sweep_seconds, stop), name="sweeper", daemon=True
    )
    celery = make_celery(settings)
    register(celery, lambda: _workshops[os.getpid()])
    celery_worker.safe_say = _keep_quiet
    signals.setup_logging.connect(_keep_our_logs, weak=False)
    signals.worker_process_init.connect(start_child, weak=False)
    signals.worker_ready.connect(_ready, weak=False)
    signals.worker_shutting_down.connect(leave, weak=False)
    worker = celery.Worker(
        pool="prefork", without_gossip=True, without_mingle=True, without_heartbeat=True, quiet=True, beat=False
    )
    sweeper.start()
    worker.start()
    sys.exit(worker.exitcode)


def _keep_our_logs(**_: Any) -> None:
    """Celery configures no logging where somebody listens here."""


def _keep_quiet(*_: Any) -> None:
    """Celery writes a line of its own to the terminal where it is stopped; ours is in the log."""


def _ready(**_: Any) -> None:
    signal.signal(signal.SIGHUP, signal.getsignal(signal.SIGTERM))  # a terminal that closes must leave nothing behind
    structlog.get_logger().info("worker ready")


def _leave(sweeper: threading.Thread, stop: threading.Event, sign: StopSign) -> None:
    """End this process, and with it its children, as soon as nothing is under way; what then is, is taken up again."""
    structlog.get_logger().info("worker is stopping")
    started = time.monotonic()
    deadline = started + STOP_SECONDS
    while state.reserved_requests and time.monotonic() < deadline:
        if time.monotonic() > started + FINISH_SECONDS:
            sign.put_up()
        time.sleep(0.05)
    stop.set()
    sweeper.join(deadline + 1 - time.monotonic())
    with suppress(OSError):
        Path(get_temp_dir()).rmdir()  # the pool's, empty by now; leaving at once skips the library's own tidying
    os._exit(0)
