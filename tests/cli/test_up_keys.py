"""``corevaultd up`` makes missing keys before it migrates.

It refuses to replace an identity key that the database needs.
"""

from pathlib import Path

import pytest
from sqlalchemy import select
from typer.testing import CliRunner, Result

from app.auth.models import ApiKey
from app.auth.service import Keys
from app.cli import installation, up
from app.cli.commands import cli
from app.config import Settings
from app.db import Database, make_engine, now
from app.db.migrations import downgrade, is_at_head
from app.vault.keys import IDENTITY, load_identity_key

pytestmark = pytest.mark.sqlite


@pytest.fixture
def settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Settings:
    """An installation whose ``up`` starts no processes."""
    monkeypatch.setattr(up, "supervise", lambda children: None)
    settings = Settings(data_dir=tmp_path / "data")
    installation.create_keys(settings)
    installation.migrate(settings)
    return settings


def _run_up(settings: Settings) -> Result:
    return CliRunner().invoke(cli, ["up", "--port", "0", "--data-dir", str(settings.data_dir)])


def _lose_identity_key(settings: Settings) -> None:
    (settings.keys_dir / IDENTITY).unlink()


def test_up_makes_the_identity_key_before_it_seals_callers(settings: Settings) -> None:
    """Callers of a sign-in service are older than the identity key; revision 0009 seals their rows."""
    database = Database(make_engine(settings.database_url))
    with database.write() as tx:
        tx.add(ApiKey(id="key_1", name="a", role="owner", source="oidc", secret_hash="x", created_at=now()))
    downgrade(database.engine, "0008")
    _lose_identity_key(settings)
    ended = _run_up(settings)
    assert ended.exit_code == 0, ended.output
    assert is_at_head(database.engine)
    with database.read() as session:
        assert session.scalars(select(ApiKey.seal)).one()
    database.dispose()


@pytest.mark.parametrize("revision", ["0008", "head"])
def test_up_does_not_replace_an_identity_key_that_is_needed(settings: Settings, revision: str) -> None:
    database = Database(make_engine(settings.database_url))
    with database.write() as tx:
        Keys(load_identity_key(settings.keys_dir)).create(tx, "first", "admin")
    if revision != "head":
        downgrade(database.engine, revision)
    _lose_identity_key(settings)
    ended = _run_up(settings)
    assert ended.exit_code == 1
    assert f"there is no identity.key in {settings.keys_dir}" in ended.stderr
    assert "set COREVAULT_KEYS_DIR" in ended.stderr
    assert not (settings.keys_dir / IDENTITY).exists()
    assert is_at_head(database.engine) == (revision == "head")
    assert CliRunner().invoke(cli, ["keys", "--data-dir", str(settings.data_dir)]).exit_code == 0
    assert _run_up(settings).exit_code == 0
    database.dispose()


@pytest.mark.parametrize("revision", ["0002", "base"])
def test_up_makes_keys_for_a_database_older_than_keyed_hashes(settings: Settings, revision: str) -> None:
    engine = make_engine(settings.database_url)
    downgrade(engine, revision)
    _lose_identity_key(settings)
    assert _run_up(settings).exit_code == 0
    assert is_at_head(engine)
    engine.dispose()


def test_up_replaces_an_identity_key_that_no_row_needs(settings: Settings) -> None:
    _lose_identity_key(settings)
    assert _run_up(settings).exit_code == 0
    assert (settings.keys_dir / IDENTITY).exists()
