"""The folder of an installation: its lock, its keys, its database, its first administrator."""

import fcntl
import os
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from functools import partial
from pathlib import Path
from typing import Any

from sqlalchemy import make_url

from app.audit import chain
from app.audit.journal import record_command
from app.auth import repository
from app.auth.models import ApiKey
from app.auth.seals import is_sealed, seal_of
from app.auth.service import Keys
from app.cli.failures import fail, warn
from app.cli.relocation import sort_into_areas
from app.config import Settings
from app.db import Database, grants, make_engine
from app.db.migrations import upgrade
from app.errors import CorevaultError, Unauthenticated
from app.ledger import HighWaterMark, Ledger
from app.ledger.integrity.reconciliation import Reconciled
from app.ledger.privileges import PRIVILEGES
from app.vault import keys, rotation
from app.vault.errors import VaultError
from app.vault.marks import open_marks
from app.vault.signing import Cutoff, Signer
from app.vault.stores import open_store
from app.vault.wrapped_keys import WrappedKeys

RESTRICTED = {**PRIVILEGES, "audit_entries": "SELECT, INSERT, UPDATE", "audit_heads": "SELECT, INSERT"}
"""Tables of which the service removes nothing (a trigger lets an audit entry be given its place, once)."""


@contextmanager
def lock_folder(folder: Path) -> Iterator[None]:
    """Hold the folder for this process. The lock is on the folder itself and goes with the process: no file stays."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            fail(f"another corevaultd runs on {folder}")
        yield
    finally:
        os.close(handle)


def alone(folder: Path) -> AbstractContextManager[None]:
    """Hold the folder if there is one; none is made."""
    return lock_folder(folder) if folder.is_dir() else nullcontext()


def check_exists(settings: Settings) -> None:
    """End a command that needs a database where there is none: to open a local one would create it."""
    url = make_url(settings.database_url)
    if url.get_backend_name() != "sqlite" or url.database is None or Path(url.database).exists():
        return
    if not settings.keys_dir.exists():
        fail(f"there is no installation in {settings.data_dir}; --data-dir names the folder of one")
    fail(f"there is no database at {url.database}, so it is not migrated; run 'corevaultd migrate'")


def check_keys(settings: Settings) -> None:
    """End a command that works on keys where there are none."""
    if not settings.keys_dir.is_dir():
        fail(f"there are no keys in {settings.keys_dir}; --data-dir names the folder of an installation")


def check_folder(data_dir: Path | None) -> None:
    """End a command that would make a folder which was named on the command line, and so perhaps mistyped."""
    if data_dir is not None and not data_dir.is_dir():
        fail(f"there is no folder {data_dir}; create it first, or correct --data-dir")


def migrate(settings: Settings) -> None:
    """Bring the database to the newest revision, and what an older version stored to where it belongs now."""
    _make_database_folder(settings.database_url)
    database = Database(make_engine(settings.database_url))
    try:
        upgrade(database.engine, WrappedKeys(open_store(settings.wrapped_keys_url)).keep, partial(_seal, settings))
        _warn_of_useless_keys(database)
        sort_into_areas(settings, database)
        database.forget()
    finally:
        database.dispose()


def _seal(settings: Settings, row: Mapping[str, Any]) -> str:
    try:
        identity_key = keys.load_identity_key(settings.keys_dir)
    except VaultError:
        raise CorevaultError(
            "The database holds API keys, which this version seals with the identity key: let COREVAULT_KEYS_DIR name "
            "the folder of the API's keys, and repeat the command. Nothing was changed."
        ) from None
    fields = {name: value for name, value in row.items() if name not in {"revoked_at", "seal"}}
    return seal_of(identity_key, ApiKey(**fields))


def _warn_of_useless_keys(database: Database) -> None:
    """Keys that were never used since keyed hashes came: what is kept of them is not believed any more."""
    with database.read() as session:
        useless = [key.id for key in repository.list_unrevoked(session) if key.seal is None]
    if useless:
        warn(
            f"{len(useless)} API keys have an old form that is not accepted any more: {', '.join(useless)}. Rotate or "
            "revoke them (who rotates keeps its datasets); `corevaultd admin-key FILE` makes an administrator's key."
        )


def grant(settings: Settings, role: str) -> None:
    """Let ``role`` run the service on tables that the role of the settings owns."""
    engine = make_engine(settings.database_url)
    try:
        grants.grant(engine, role, RESTRICTED)
    except ValueError as error:
        fail(str(error))
    finally:
        engine.dispose()


def reconcile(settings: Settings, *, adopt: bool) -> list[Reconciled]:
    """Bring the database up to its mark; see :func:`app.ledger.integrity.reconciliation.reconcile`."""
    ledger, _ = _ledger(settings)
    database = Database(make_engine(settings.database_url))  # without a guard: this is what mends it
    try:
        with database.write() as tx:
            reconciled = ledger.reconcile(tx, adopt=adopt)
            record_command(tx, "reconcile")
            return reconciled
    finally:
        database.dispose()


def unfreeze(settings: Settings, dataset_id: str, reason: str) -> None:
    """End the freeze of a dataset's account; also beside processes that run."""
    database = Database(make_engine(settings.database_url))
    try:
        ledger, _ = _ledger(settings)
        with database.write() as tx:
            ledger.unfreeze(tx, dataset_id, reason)
            record_command(tx, "unfreeze", dataset_id, reason=reason)
    finally:
        database.dispose()


def rotate_ledger_key(settings: Settings) -> str:
    """Retire the ledger key at what it has signed so far, and sign every account with the new one; its id.

    No process that signs may run meanwhile. One that does signs nothing any more, as it meets a key that it does not
    know.
    """
    keys.create_keys(settings.keys_dir)
    database = Database(make_engine(settings.database_url))
    try:
        with alone(settings.data_dir), database.write() as tx:
            ledger, _ = _ledger(settings)
            ledger.check_mark(tx)
            cutoff: Cutoff = {"checkpoint": ledger.newest_checkpoint(tx), "audit": chain.lock_newest(tx)}
            retired = rotation.rotate(settings.keys_dir, "ledger", cutoff)
            ledger, signer = _ledger(settings)
            ledger.sign_anew(tx)
            record_command(tx, "keys rotate", retired)
            while chain.extend(tx, signer) == chain.BATCH:
                pass
        return retired
    finally:
        database.dispose()


def _ledger(settings: Settings) -> tuple[Ledger, Signer]:
    held = keys.load_api_keys(settings.keys_dir)
    signer = Signer(held.ledger_seed, held.ledger_retired, held.ledger_until)
    return Ledger(signer, settings.max_epsilon, HighWaterMark(open_marks(settings.mark_url), signer)), signer


def create_keys(settings: Settings, share: Path | None = None) -> Path:
    """Make whatever key is missing; returns the folder with the API's share, which opens nothing."""
    keys.create_keys(settings.keys_dir)
    chosen = share or settings.keys_dir / "api"
    keys.share_api_keys(settings.keys_dir, chosen)
    return chosen


def new_admin_key(settings: Settings) -> str:
    """The secret of a new admin key."""
    identity_key = keys.load_identity_key(settings.keys_dir)
    database = Database(make_engine(settings.database_url))
    try:
        with database.write() as tx:
            key, secret = Keys(identity_key).create(tx, "administrator", "admin")
            record_command(tx, "admin-key", key.id)
        return secret
    finally:
        database.dispose()


def write_admin_key(settings: Settings, file: Path) -> bool:
    """Create an admin key, the file's only content (0600); False, and nothing happens, where the file exists."""
    file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    try:
        handle = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        return False
    try:
        with os.fdopen(handle, "w", encoding="ascii") as opened:
            opened.write(new_admin_key(settings))
            opened.flush()
            os.fsync(opened.fileno())
    except BaseException:
        file.unlink()
        raise
    return True


def has_keys(settings: Settings) -> bool:
    """Whether there is any API key that works, or did until it expired."""
    identity_key = keys.load_identity_key(settings.keys_dir)
    database = Database(make_engine(settings.database_url))
    try:
        with database.read() as session:
            return any(is_sealed(identity_key, key) for key in repository.list_unrevoked(session))
    finally:
        database.dispose()


def holds_admin_key(settings: Settings, file: Path) -> bool:
    """Whether the file's content is an admin key of this installation that has not expired and was not revoked."""
    try:
        secret = file.read_text(encoding="ascii").strip()
    except (OSError, UnicodeDecodeError):
        return False
    identity_key = keys.load_identity_key(settings.keys_dir)
    database = Database(make_engine(settings.database_url))
    try:
        with database.read() as session:
            return Keys(identity_key).authenticate(session, secret).role == "admin"
    except Unauthenticated:
        return False
    finally:
        database.dispose()


def tidy(settings: Settings) -> None:
    """Fold SQLite's log into its database, also after a process that was killed: two files less stay behind."""
    database = Database(make_engine(settings.database_url))
    with suppress(Exception):  # whatever ails the database, a stop goes on
        database.forget()
    database.dispose()


def _make_database_folder(url: str) -> None:
    named = make_url(url)
    if named.get_backend_name() == "sqlite" and named.database:
        Path(named.database).parent.mkdir(mode=0o700, parents=True, exist_ok=True)
