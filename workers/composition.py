"""Composition root of every command of the worker: makes the ledger and the areas of storage."""

from app.auth import models as _auth_models  # noqa: F401  (other tables have foreign keys to its table)
from app.config import Settings
from app.db import Database, make_engine
from app.ledger import HighWaterMark, Ledger
from app.vault.areas import Areas, WorkerAreas
from app.vault.keys import WorkerKeys, load_sealing_key, load_worker_keys
from app.vault.marks import open_marks
from app.vault.signing import Signer
from workers.enclave import OpeningKey
from workers.rewrap import RewrapResult, rewrap


def make_ledger(settings: Settings, keys: WorkerKeys) -> tuple[Database, Ledger]:
    """Make the database and the ledger.

    The database refuses writes while it is behind the high-water mark.
    """
    signer = Signer(keys.ledger_seed, keys.ledger_retired, keys.ledger_until)
    mark = HighWaterMark(open_marks(settings.mark_url), signer)
    return Database(make_engine(settings.database_url), mark.confirm), Ledger(signer, settings.max_epsilon, mark)


def open_areas(settings: Settings) -> WorkerAreas:
    """Open the areas of storage, the vault included."""
    shared = Areas.at(settings.incoming_url, settings.released_url, settings.wrapped_keys_url)
    return WorkerAreas.with_vault(shared, settings.vault_url)


def rewrap_keys(settings: Settings) -> RewrapResult:
    """Call :func:`workers.rewrap.rewrap` with the settings' database and keys."""
    keys = load_worker_keys(settings.keys_dir)
    database, _ = make_ledger(settings, keys)
    opening_key = OpeningKey(keys.opening_key, keys.opening_retired, keys.fingerprint_key)
    try:
        return rewrap(database, open_areas(settings).keys, opening_key, load_sealing_key(settings.keys_dir))
    finally:
        database.dispose()
