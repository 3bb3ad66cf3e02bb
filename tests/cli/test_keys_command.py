"""``corevaultd keys``: rotation, escrow and restore."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from app.cli.commands import cli
from app.config import Settings
from app.db import Database, make_engine
from app.main import build_services
from app.vault.envelope import seal_new_dataset_key
from app.vault.keys import load_api_keys, load_worker_keys
from app.vault.signing import KeyRing, Signer
from tests.factories import rows
from workers.enclave import OpeningKey
from workers.main import main as worker_main

pytestmark = pytest.mark.sqlite


@pytest.fixture
def settings(tmp_path: Path, sqlite_file: Path, monkeypatch: pytest.MonkeyPatch) -> Settings:
    monkeypatch.setenv("COREVAULT_DATA_DIR", str(tmp_path / "data"))
    monkeypatch.setenv("COREVAULT_DATABASE_URL", f"sqlite:///{sqlite_file}")
    assert run("keys").exit_code == 0
    return Settings()


def run(*command: str | Path) -> Result:
    return CliRunner().invoke(cli, [str(part) for part in command])


def test_certificates_stay_verifiable_after_rotations(settings: Settings) -> None:
    """``GET /v1/keys`` lists every key with its use, and the current keys first."""
    share = settings.keys_dir / "api"
    signed = Signer(load_worker_keys(settings.keys_dir).release_seed).sign({"release": 1})
    before = load_api_keys(share)
    for use in ("ledger", "release", "opening"):
        assert run("keys", "rotate", use).exit_code == 0
    after = load_api_keys(share)
    assert (before.ledger_public, before.release_public) == (after.ledger_retired[0], after.release_retired[0])
    assert before.sealing_key != after.sealing_key
    services = build_services(settings.model_copy(update={"keys_dir": share}))
    published = [(key.use, key.public_key) for key in services.verification_keys]
    services.close()
    assert published == [
        ("ledger", after.ledger_public),
        ("release", after.release_public),
        ("ledger", before.ledger_public),
        ("release", before.release_public),
    ]
    assert KeyRing(key for use, key in published if use == "release").verify(signed)


def test_rotation_of_an_unknown_key_is_refused(settings: Settings) -> None:
    before = load_worker_keys(settings.keys_dir)
    assert run("keys", "rotate", "identity").exit_code == 2
    assert load_worker_keys(settings.keys_dir) == before


def test_lost_keys_are_restored_from_escrow(settings: Settings, tmp_path: Path) -> None:
    assert run("keys", "rotate", "opening").exit_code == 0
    assert run("keys", "escrow-key", tmp_path / "escrow.key").exit_code == 0
    recipient = ("--recipient", tmp_path / "escrow.pub")
    assert run("keys", "escrow", tmp_path / "keys.sealed", *recipient).exit_code == 0
    assert run("keys", "escrow", tmp_path / "keys.sealed", *recipient).exit_code == 1  # the file exists
    held = load_worker_keys(settings.keys_dir)
    settings.keys_dir.rename(tmp_path / "lost")
    back = run("keys", "restore", tmp_path / "keys.sealed", "--escrow-key", tmp_path / "escrow.key")
    assert back.exit_code == 0, back.output
    assert load_worker_keys(settings.keys_dir) == held
    assert load_api_keys(settings.keys_dir / "api").sealing_key == load_api_keys(tmp_path / "lost" / "api").sealing_key


def test_rewrap_command_of_the_worker_seals_boxes_again(
    settings: Settings, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    services = build_services(settings.model_copy(update={"keys_dir": settings.keys_dir / "api"}))
    database = Database(make_engine(settings.database_url))
    with database.write() as tx:
        dataset_id = rows.dataset(tx, rows.api_key(tx).id, sensitivity="public").id
    database.dispose()
    services.areas.keys.keep(dataset_id, seal_new_dataset_key(dataset_id, services.sealing_key, public=True))
    services.close()
    assert run("keys", "rotate", "opening").exit_code == 0
    monkeypatch.setattr("sys.argv", ["corevault-worker", "rewrap"])
    monkeypatch.setattr("workers.commands.forbid_core_dumps", lambda: None)
    worker_main()
    assert json.loads(capsys.readouterr().out.split()[0]) == 1
    keys = OpeningKey(load_worker_keys(settings.keys_dir).opening_key)
    assert keys.dataset_key(services.areas.keys.box(dataset_id), dataset_id, public=True)
