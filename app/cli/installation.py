"""Operations on an installation: its lock, keys, database and administrators."""

import fcntl
import json
import os
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from functools import partial
from pathlib import Path
from typing import Any

from sqlalchemy import Engine, exists, inspect, make_url, select

from app.audit import chain
from app.audit.journal import record_command
from app.auth import repository
from app.auth.models import ApiKey
from app.auth.seals import compute_seal, is_sealed
from app.auth.service import Keys
from app.cli.failures import fail, warn
from app.cli.relocation import sort_into_areas
from app.config import Settings
from app.continuous_audit import resets
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
"""Tables whose rows the service may not remove.

A trigger allows one update of an audit entry, which sets its place in the chain.
"""


@contextmanager
def lock_folder(folder: Path) -> Iterator[None]:
    """Lock the folder for this process.

    The lock is on the folder itself and ends with the process, so no lock file remains.
    """
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            fail(f"another corevaultd runs on {folder}; stop it first")
        yield
    finally:
        os.close(handle)


def lock_existing(folder: Path) -> AbstractContextManager[None]:
    """Lock the folder if it exists; do not create it."""
    return lock_folder(folder) if folder.is_dir() else nullcontext()


def check_exists(settings: Settings) -> None:
    """End a command that needs a database if there is none.

    Otherwise SQLite would create an empty one.
    """
    if _may_exist(settings.database_url):
        return
    if not settings.keys_dir.exists():
        fail(f"there is no installation in {settings.data_dir}; set --data-dir to the folder of an installation")
    database = make_url(settings.database_url).database
    fail(f"there is no database at {database}; run 'corevaultd migrate' to create it")


def _may_exist(database_url: str) -> bool:
    url = make_url(database_url)
    return url.get_backend_name() != "sqlite" or url.database is None or Path(url.database).exists()


def check_keys(settings: Settings) -> None:
    """End a command that needs key files if there are none."""
    if not settings.keys_dir.is_dir():
        fail(f"there are no keys in {settings.keys_dir}; set --data-dir to the folder of an installation")


def check_statement(settings: Settings, file: Path) -> None:
    """End a command that could not write its signed statement."""
    check_keys(settings)
    if file.exists():
        fail(f"{file} exists already; choose another file for the statement")
    if not file.absolute().parent.is_dir():
        fail(f"there is no folder {file.absolute().parent} for the statement")
    keys.read_secret_key(settings.keys_dir / keys.RELEASE)  # an audit may take long; a missing key is found before it


def write_document(file: Path, document: Mapping[str, Any]) -> None:
    """Write a signed document as JSON to a new file."""
    with file.open("x", encoding="utf-8") as opened:
        opened.write(json.dumps(document, indent=1, sort_keys=True) + "\n")


def check_identity_key(settings: Settings) -> None:
    """End a command that would replace a missing identity key without notice.

    The API keys in the database are hashed under it. With another one, no API key works.
    """
    if (settings.keys_dir / keys.IDENTITY).exists() or not _may_exist(settings.database_url):
        return
    engine = make_engine(settings.database_url)
    try:
        if _has_hashed_keys(engine):
            fail(
                f"there is no {keys.IDENTITY} in {settings.keys_dir}, but the API keys in the database are hashed "
                "under one; set COREVAULT_KEYS_DIR to the folder of the keys, or restore it. If there is no copy, run "
                "'corevaultd keys' to make a new one, and then 'corevaultd admin-key FILE': no old API key will work"
            )
    finally:
        engine.dispose()


def _has_hashed_keys(engine: Engine) -> bool:
    """Whether a key that is not revoked has a keyed hash; the database may be at any revision."""
    schema, table = inspect(engine), ApiKey.__tablename__
    if not schema.has_table(table) or "prefix" not in {column["name"] for column in schema.get_columns(table)}:
        return False
    with engine.connect() as connection:
        hashed = exists().where(ApiKey.prefix.is_not(None), ApiKey.revoked_at.is_(None))
        return bool(connection.scalar(select(hashed)))


def check_folder(data_dir: Path | None) -> None:
    """End a command if the folder in its options does not exist; the name may be mistyped."""
    if data_dir is not None and not data_dir.is_dir():
        fail(f"there is no folder {data_dir}; create it first, or correct --data-dir")


def migrate(settings: Settings) -> None:
    """Migrate the database to the newest revision.

    Objects that older versions stored are moved to their areas.
    """
    _make_database_folder(settings.database_url)
    with Database(make_engine(settings.database_url)) as database:
        upgrade(database.engine, WrappedKeys(open_store(settings.wrapped_keys_url)).keep, partial(_seal, settings))
        _warn_of_useless_keys(database)
        sort_into_areas(settings, database)
        database.forget()


def _seal(settings: Settings, row: Mapping[str, Any]) -> str:
    try:
        identity_key = keys.load_identity_key(settings.keys_dir)
    except VaultError:
        raise CorevaultError(
            "The migration needs the identity key to seal the API keys in the database. Set COREVAULT_KEYS_DIR to the "
            "folder of the API's keys, or run 'corevaultd keys' if there are none yet. Then repeat the command. "
            "Nothing was changed."
        ) from None
    fields = {name: value for name, value in row.items() if name not in {"revoked_at", "seal"}}
    return compute_seal(identity_key, ApiKey(**fields))


def _warn_of_useless_keys(database: Database) -> None:
    """Warn of API keys without a seal.

    They were not used since keyed hashes were introduced, and are not accepted any more.
    """
    with database.read() as session:
        useless = [key.id for key in repository.list_unrevoked(session) if key.seal is None]
    if useless:
        warn(
            f"{len(useless)} API keys have an old form that is not accepted any more: {', '.join(useless)}. Rotate or "
            "revoke them; a rotated key keeps its datasets. `corevaultd admin-key FILE` creates an administrator's key."
        )


def grant(settings: Settings, role: str) -> None:
    """Grant ``role`` the rights of the service.

    The role of the settings must own the tables.
    """
    engine = make_engine(settings.database_url)
    try:
        grants.grant(engine, role, RESTRICTED)
    except ValueError as error:
        fail(str(error))
    finally:
        engine.dispose()


def reconcile(settings: Settings, *, adopt: bool) -> list[Reconciled]:
    """Charge the database up to its mark; see :func:`app.ledger.integrity.reconciliation.reconcile`."""
    ledger, _ = _ledger(settings)
    database = Database(make_engine(settings.database_url))  # without a guard, because this repairs the database
    with database, database.write() as tx:
        reconciled = ledger.reconcile(tx, adopt=adopt)
        record_command(tx, "reconcile")
    return reconciled


def unfreeze(settings: Settings, dataset_id: str, reason: str) -> None:
    """End the freeze of a dataset's account; the service may run during the call."""
    ledger, _ = _ledger(settings)
    with Database(make_engine(settings.database_url)) as database, database.write() as tx:
        ledger.unfreeze(tx, dataset_id, reason)
        record_command(tx, "unfreeze", dataset_id, reason=reason)


def reset_audit(settings: Settings, reason: str) -> int:
    """Start the evidence of the continuous audit again; return the number of resets."""
    with Database(make_engine(settings.database_url)) as database, database.write() as tx:
        return resets.reset(tx, reason)


def rotate_ledger_key(settings: Settings) -> str:
    """Replace the ledger key and sign every account with the new one; return the retired key's id.

    The cutoff of the retired key is its last signature so far. Other processes that sign should be stopped. A running
    one finds signatures of a key that it does not have, and therefore refuses to sign.
    """
    keys.create_keys(settings.keys_dir)
    database = Database(make_engine(settings.database_url))
    with database, lock_existing(settings.data_dir), database.write() as tx:
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


def _ledger(settings: Settings) -> tuple[Ledger, Signer]:
    held = keys.load_api_keys(settings.keys_dir)
    signer = Signer(held.ledger_seed, held.ledger_retired, held.ledger_until)
    return Ledger(signer, settings.max_epsilon, HighWaterMark(open_marks(settings.mark_url), signer)), signer


def create_keys(settings: Settings, share: Path | None = None) -> Path:
    """Create the missing keys; return the folder of the API's share, which has no opening key."""
    keys.create_keys(settings.keys_dir)
    chosen = share or settings.keys_dir / "api"
    keys.share_api_keys(settings.keys_dir, chosen)
    return chosen


def create_admin_key(settings: Settings) -> str:
    """Create an admin key; return its secret."""
    identity_key = keys.load_identity_key(settings.keys_dir)
    with Database(make_engine(settings.database_url)) as database, database.write() as tx:
        key, secret = Keys(identity_key).create(tx, "administrator", "admin")
        record_command(tx, "admin-key", key.id)
    return secret


def write_admin_key(settings: Settings, file: Path) -> bool:
    """Create an admin key and write it to a new file with mode 0600.

    If the file exists, return False and create nothing.
    """
    file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    try:
        handle = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        return False
    try:
        with os.fdopen(handle, "w", encoding="ascii") as opened:
            opened.write(create_admin_key(settings))
            opened.flush()
            os.fsync(opened.fileno())
    except BaseException:
        file.unlink()
        raise
    return True


def has_keys(settings: Settings) -> bool:
    """Whether there is an API key that is valid or has expired."""
    identity_key = keys.load_identity_key(settings.keys_dir)
    with Database(make_engine(settings.database_url)) as database, database.read() as session:
        return any(is_sealed(identity_key, key) for key in repository.list_unrevoked(session))


def has_admin_key(settings: Settings, file: Path) -> bool:
    """Whether the file contains a valid admin key of this installation."""
    try:
        secret = file.read_text(encoding="ascii").strip()
    except (OSError, UnicodeDecodeError):
        return False
    identity_key = keys.load_identity_key(settings.keys_dir)
    with Database(make_engine(settings.database_url)) as database, database.read() as session:
        try:
            return Keys(identity_key).authenticate(session, secret).role == "admin"
        except Unauthenticated:
            return False


def tidy(settings: Settings) -> None:
    """Merge SQLite's write-ahead log into its database, so that its two files are removed.

    A killed process may have left them.
    """
    with Database(make_engine(settings.database_url)) as database, suppress(Exception):  # faults delay no stop
        database.forget()


def _make_database_folder(url: str) -> None:
    named = make_url(url)
    if named.get_backend_name() == "sqlite" and named.database:
        Path(named.database).parent.mkdir(mode=0o700, parents=True, exist_ok=True)
