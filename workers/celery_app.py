"""The worker's composition root: what the settings name, as a Celery application and as collaborators of its tasks."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta

import dp_accounting as _dp_accounting  # noqa: F401  (loaded before the first run, which must not meet an import)
import opendp.prelude as _opendp  # noqa: F401
import scipy.linalg as _scipy_linalg  # noqa: F401
import scipy.optimize as _scipy_optimize  # noqa: F401
import scipy.special as _scipy_special  # noqa: F401
from celery import Celery

from app.auth import models as _auth_models  # noqa: F401  (other tables point to the table of keys)
from app.config import Settings
from app.datasets.disposal import Disposal
from app.db import Database, make_engine
from app.jobs.lifecycle import Lifecycle
from app.ledger import HighWaterMark, Ledger
from app.queue.sender import CeleryQueue, celery_settings
from app.releases.publication import Publisher
from app.vault.areas import Areas, WorkerAreas
from app.vault.keys import WorkerKeys, load_sealing_key, load_worker_keys
from app.vault.marks import open_marks
from app.vault.signing import Signer
from workers.enclave import Limits, OpeningKey
from workers.ingest_task import Ingestion
from workers.rewrap import Rewrapped, rewrap
from workers.run_limits import confine
from workers.run_task import Bounds, Pace, Runner
from workers.split_queries.coordinator import Sharing
from workers.split_queries.helper import Helper
from workers.sweeper import Sweeper
from workers.tables import EnclaveTables

START_SECONDS = 60.0
"""How long a new process of the pool may take to come up."""


@dataclass(frozen=True, slots=True)
class Workshop:
    """What carries out tasks, in one process of the pool."""

    runner: Runner
    ingestion: Ingestion
    helper: Helper


def make_celery(settings: Settings) -> Celery:
    """The Celery application; tasks are registered by :func:`workers.tasks.register`."""
    celery = Celery("corevault-worker", set_as_current=False, fixups=[])
    celery.conf.update(celery_settings(settings.broker_url, settings.data_dir))
    celery.conf.update(
        worker_concurrency=settings.worker_processes,
        worker_redirect_stdouts=False,
        worker_consumer="workers.messages:Consumer",
        worker_proc_alive_timeout=START_SECONDS,
    )
    return celery


def make_workshop(settings: Settings, stopping: Callable[[], bool]) -> Workshop:
    """Collaborators that open the vault: only ever made in a process of the pool.

    ``stopping`` says whether the worker is being stopped.

    Raises:
        VaultError: for missing or damaged key files, or a storage URL that is not supported.
    """
    keys = load_worker_keys(settings.keys_dir)
    database, ledger = _accounts(settings, keys)
    lifecycle = _lifecycle(settings, ledger)
    areas = _areas(settings)
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
    return Workshop(
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
    )


def make_sweeper(settings: Settings) -> Sweeper:
    """The sweeper, with connections of its own."""
    database, ledger = _accounts(settings, load_worker_keys(settings.keys_dir))
    return Sweeper(
        database,
        ledger,
        _lifecycle(settings, ledger),
        CeleryQueue(settings.broker_url, settings.data_dir),
        Disposal(_areas(settings), timedelta(days=settings.keep_superseded_days)),
    )


def rewrap_keys(settings: Settings) -> Rewrapped:
    """See :func:`workers.rewrap.rewrap`."""
    keys = load_worker_keys(settings.keys_dir)
    database, _ = _accounts(settings, keys)
    opening_key = OpeningKey(keys.opening_key, keys.opening_retired, keys.fingerprint_key)
    try:
        return rewrap(database, _areas(settings).keys, opening_key, load_sealing_key(settings.keys_dir))
    finally:
        database.dispose()


def _accounts(settings: Settings, keys: WorkerKeys) -> tuple[Database, Ledger]:
    """The database, which takes nothing while it is behind the ledger's mark, and the ledger."""
    signer = Signer(keys.ledger_seed, keys.ledger_retired, keys.ledger_until)
    mark = HighWaterMark(open_marks(settings.mark_url), signer)
    return Database(make_engine(settings.database_url), mark.confirm), Ledger(signer, settings.max_epsilon, mark)


def _areas(settings: Settings) -> WorkerAreas:
    shared = Areas.at(settings.incoming_url, settings.released_url, settings.wrapped_keys_url)
    return WorkerAreas.with_vault(shared, settings.vault_url)


def _lifecycle(settings: Settings, ledger: Ledger) -> Lifecycle:
    queue = CeleryQueue(settings.broker_url, settings.data_dir)
    return Lifecycle(ledger, queue, settings.lease_seconds)
