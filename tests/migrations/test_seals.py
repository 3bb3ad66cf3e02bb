"""Revision 0009: API keys get seals, and keys with a plain hash are named."""

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

import pytest
import sqlalchemy as sa
import typer

from app.auth.models import ApiKey
from app.auth.service import Keys
from app.cli import installation, verification
from app.config import Settings
from app.db import Database, make_engine, now
from app.db.migrations import downgrade, is_at_head
from app.errors import CorevaultError
from app.vault.keys import load_identity_key
from tests.factories import stack

PLAIN = "cv_" + "A" * 43


@pytest.fixture
def settings(tmp_path: Path, backend: None) -> Iterator[Settings]:
    """An installation at revision 0008.

    It has an administrator key, an expiring key, a revoked key and a key of the old form.
    """
    with _database_url(tmp_path) as url:
        settings = Settings(data_dir=tmp_path, database_url=url)
        installation.create_keys(settings)
        installation.migrate(settings)
        database = Database(make_engine(url))
        keys = Keys(load_identity_key(settings.keys_dir))
        with database.write() as tx:
            _, secret = keys.create(tx, "first", "admin")
            keys.create(tx, "ends", "owner", datetime(2999, 1, 1, 12, tzinfo=UTC))
            revoked, _ = keys.create(tx, "revoked", "owner")
            keys.revoke(tx, revoked.id)
            plain = hashlib.sha256(PLAIN.encode()).hexdigest()
            tx.add(ApiKey(id="key_old", name="old", role="admin", secret_hash=plain, created_at=now()))
        (tmp_path / "admin.key").write_text(secret)
        downgrade(database.engine, "0008")
        database.dispose()
        yield settings


@contextmanager
def _database_url(folder: Path) -> Iterator[str]:
    if stack.on_services():
        with stack.fresh_database() as url:
            yield url
    else:
        yield f"sqlite:///{folder / 'old.sqlite3'}"


def test_keys_still_work_and_the_unusable_one_is_named(
    settings: Settings, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    installation.migrate(settings)
    assert "1 API keys have an old form that is not accepted any more: key_old." in capsys.readouterr().err
    assert installation.has_admin_key(settings, tmp_path / "admin.key")
    (tmp_path / "plain.key").write_text(PLAIN)
    assert not installation.has_admin_key(settings, tmp_path / "plain.key")
    database = Database(make_engine(settings.database_url))
    with database.read() as session:
        assert Keys(load_identity_key(settings.keys_dir)).list_unsealed(session) == ["key_old"]
        sealed = session.scalars(sa.select(ApiKey.name).where(ApiKey.seal.is_not(None))).all()
    database.dispose()
    assert set(sealed) == {"first", "ends"}


def test_rows_that_are_added_later_are_not_sealed(settings: Settings) -> None:
    """Existing rows are sealed once. A second migration seals nothing."""
    installation.migrate(settings)
    database = Database(make_engine(settings.database_url))
    with database.write() as tx:
        tx.execute(sa.update(ApiKey).values(seal=None))
    installation.migrate(settings)
    with database.read() as session:
        assert not session.scalars(sa.select(ApiKey.id).where(ApiKey.seal.is_not(None))).all()
    database.dispose()


def test_without_the_identity_key_nothing_changes(settings: Settings, tmp_path: Path) -> None:
    elsewhere = settings.model_copy(update={"keys_dir": tmp_path / "none"})
    with pytest.raises(CorevaultError, match="COREVAULT_KEYS_DIR"):
        installation.migrate(elsewhere)
    engine = make_engine(settings.database_url)
    assert not is_at_head(engine)
    engine.dispose()
    installation.migrate(settings)


def test_verify_reports_an_altered_key(settings: Settings, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    installation.migrate(settings)
    with pytest.raises(typer.Exit):
        verification.report(settings, storage=False, mark=False, as_json=False)
    assert "key key_old: it was altered or added in the database" in capsys.readouterr().out
