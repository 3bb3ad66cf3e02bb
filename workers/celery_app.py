"""The worker's composition root: makes the Celery application and the objects that its tasks use."""

import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import timedelta

import dp_accounting as _dp_accounting  # noqa: F401  (loaded here, so that no run imports a module)
import opendp.prelude as _opendp  # noqa: F401
import scipy.linalg as _scipy_linalg  # noqa: F401
import scipy.optimize as _scipy_optimize  # noqa: F401
import scipy.special as _scipy_special  # noqa: F401
from celery import Celery

from app.config import Settings
from app.datasets.disposal import Disposal
from app.jobs.lifecycle import Lifecycle
from app.ledger import Ledger
from app.queue.sender import CeleryQueue, make_celery_settings
from app.releases.publication import Publisher
from app.vault.keys import load_worker_keys
from app.vault.signing import Signer
from workers.composition import make_ledger, open_areas
from workers.continuous_audit import Auditor, Governor
from workers.enclave import Limits, OpeningKey
from workers.ingest_task import Ingestion
from workers.presence import Presence
from workers.run_limits import confine
from workers.run_task import Bounds, Pace, Runner
from workers.split_queries.coordinator import Sharing
from workers.split_queries.helper import Helper
from workers.sweeper import Sweeper
from workers.tables import EnclaveTables

START_SECONDS = 60.0
"""How long a new process of the pool may take to start."""
LOST_SECONDS = 1.0
"""How long after the end of a killed process of the pool its task still counts as running.

Until then its worker takes no other task in its place, and waits for it at a stop. Celery's default is ten seconds.
"""


@dataclass(frozen=True, slots=True)
class TaskHandlers:
    """The objects that carry out tasks in one process of the pool."""

    runner: Runner
    ingestion: Ingestion
    helper: Helper
    auditor: Auditor | None = None
    """Audits this process between tasks; None: the audit is turned off."""
    turn: threading.Lock = field(default_factory=threading.Lock)
    """Held by a task while it runs, and by the audit while it draws a batch."""


def make_celery(settings: Settings) -> Celery:
    """Make the Celery application; :func:`workers.tasks.register` registers its tasks."""
    celery = Celery("corevault-worker", set_as_current=False, fixups=[])
    celery.conf.update(make_celery_settings(settings.broker_url, settings.data_dir))
    celery.conf.update(
        worker_concurrency=settings.worker_processes,
        worker_redirect_stdouts=False,
        worker_consumer="workers.messages:Consumer",
        worker_proc_alive_timeout=START_SECONDS,
        worker_lost_wait=LOST_SECONDS,
    )
    return celery


def make_task_handlers(settings: Settings, stopping: Callable[[], bool]) -> TaskHandlers:
    """Make the objects that carry out tasks.

    They can open the vault, so only processes of the pool make them.

    Args:
        settings: of the worker.
        stopping: whether the worker is being stopped.

    Raises:
        VaultError: for missing or damaged key files, or a storage URL that is not supported.
    """
    keys = load_worker_keys(settings.keys_dir)
    database, ledger = make_ledger(settings, keys)
    lifecycle = _make_lifecycle(settings, ledger)
    areas = open_areas(settings)
    opening_key = OpeningKey(keys.opening_key, keys.opening_retired, keys.fingerprint_key)
    pace = Pace(settings.lease_seconds, settings.heartbeat_seconds)
    bounds = Bounds(settings.run_limit_scale, confine, stopping)
    publisher = Publisher(areas.released, Signer(keys.release_seed))
    tables = EnclaveTables(areas.vault, opening_key)
    queue = CeleryQueue(settings.broker_url, settings.data_dir)
    sharing = Sharing(areas.vault, opening_key, queue, settings.partitions, settings.split_rows)
    limits = Limits(
        memory_bytes=settings.ingest_memory_bytes,
        rows=settings.max_rows,
        decoded_bytes=settings.max_decoded_bytes,
        time_scale=settings.run_limit_scale,
    )
    turn = threading.Lock()
    auditor = Auditor(database, Governor(settings.audit_share), turn) if settings.audit_share else None
    return TaskHandlers(
        runner=Runner(
            database,
            ledger,
            lifecycle,
            publisher=publisher,
            keys=areas.keys,
            tables=tables,
            sharing=sharing,
            pace=pace,
            bounds=bounds,
        ),
        ingestion=Ingestion(database, ledger, areas, opening_key, limits, pace, stopping),
        helper=Helper(database, ledger, areas, opening_key, tables),
        auditor=auditor,
        turn=turn,
    )


def make_sweeper(settings: Settings) -> Sweeper:
    """Make the sweeper, with a separate database engine."""
    database, ledger = make_ledger(settings, load_worker_keys(settings.keys_dir))
    return Sweeper(
        database,
        ledger,
        _make_lifecycle(settings, ledger),
        CeleryQueue(settings.broker_url, settings.data_dir),
        Disposal(open_areas(settings), timedelta(days=settings.keep_superseded_days)),
        presence=Presence(database, settings.worker_processes),
    )


def _make_lifecycle(settings: Settings, ledger: Ledger) -> Lifecycle:
    queue = CeleryQueue(settings.broker_url, settings.data_dir)
    return Lifecycle(ledger, queue, settings.lease_seconds)
