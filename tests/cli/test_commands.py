"""Commands of ``corevaultd`` in the test's process."""

import shlex
import socket
import subprocess
from importlib.metadata import version
from pathlib import Path

import pytest
from sqlalchemy import select, update
from typer.testing import CliRunner

from app.audit.models import AuditEntry
from app.auth.models import ApiKey
from app.cli import installation, processes, up
from app.cli.commands import cli
from app.cli.sockets import is_loopback
from app.cli.supervisor import LONGEST_DELAY_SECONDS, compute_delay_seconds
from app.config import Settings
from app.continuous_audit.models import AuditState
from app.db import Database, make_engine, now
from app.db.migrations import is_at_head
from app.ledger import Cause
from app.vault.keys import load_api_keys, load_worker_keys

pytestmark = pytest.mark.sqlite

RUNNER = CliRunner()


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return Settings(data_dir=tmp_path / "data")


def _admins(settings: Settings) -> list[ApiKey]:
    database = Database(make_engine(settings.database_url))
    with database.read() as session:
        admins = list(session.scalars(select(ApiKey)))
    database.dispose()
    return admins


def _install(settings: Settings) -> None:
    installation.migrate(settings)
    installation.create_keys(settings)


def test_help_lists_every_command() -> None:
    shown = RUNNER.invoke(cli, ["--help"])
    assert shown.exit_code == 0
    for command in ("up", "api", "migrate", "keys", "admin-key"):
        assert command in shown.output


def test_migrate_creates_folder_and_tables(settings: Settings) -> None:
    assert RUNNER.invoke(cli, ["migrate", "--data-dir", str(settings.data_dir)]).exit_code == 0
    engine = make_engine(settings.database_url)
    assert is_at_head(engine)
    engine.dispose()


def test_migrate_explains_a_database_that_cannot_be_reached(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COREVAULT_DATABASE_URL", "postgresql+psycopg://127.0.0.1:1/none")
    ended = RUNNER.invoke(cli, ["migrate"])
    assert ended.exit_code == 1
    assert "COREVAULT_DATABASE_URL" in ended.output
    assert len(ended.output.splitlines()) == 1


def test_api_share_has_no_opening_key(settings: Settings) -> None:
    """W1: the folder for the API has no opening key."""
    settings.data_dir.mkdir()
    assert RUNNER.invoke(cli, ["keys", "--data-dir", str(settings.data_dir)]).exit_code == 0
    share = settings.keys_dir / "api"
    names = {"sealing.pub", "ledger.key", "ledger.pub", "release.pub", "identity.key"}
    assert {file.name for file in share.iterdir()} == names
    opening = load_worker_keys(settings.keys_dir).opening_key
    assert all(file.read_text() != (settings.keys_dir / "opening.key").read_text() for file in share.iterdir())
    assert load_api_keys(share).sealing_key != opening


def test_existing_keys_stay(settings: Settings) -> None:
    installation.create_keys(settings)
    before = load_worker_keys(settings.keys_dir)
    installation.create_keys(settings)
    assert load_worker_keys(settings.keys_dir) == before


def test_only_the_worker_gets_the_path_of_the_opening_key(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    """W1: no variable in the API's environment refers to it."""
    monkeypatch.setenv("COREVAULT_KEYS_DIR", str(settings.keys_dir))
    share = installation.create_keys(settings)
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        api = up.make_api_child(settings, listener, share)
    worker = up.make_worker_child(settings)
    assert worker.environment["COREVAULT_KEYS_DIR"] == str(settings.keys_dir)
    assert api.environment["COREVAULT_KEYS_DIR"] == str(share)
    assert not (Path(api.environment["COREVAULT_KEYS_DIR"]) / "opening.key").exists()


def test_admin_key_is_the_only_content_of_its_file(settings: Settings, tmp_path: Path) -> None:
    _install(settings)
    file = tmp_path / "admin.key"
    arguments = ["admin-key", str(file), "--data-dir", str(settings.data_dir)]
    assert RUNNER.invoke(cli, arguments).exit_code == 0
    assert file.stat().st_mode & 0o777 == 0o600
    assert file.read_text().startswith("cv_")
    assert file.read_text() == file.read_text().strip()
    ended = RUNNER.invoke(cli, arguments)
    assert ended.exit_code == 1
    assert len(_admins(settings)) == 1


def test_unfreeze_ends_a_freeze_and_records_the_reason(settings: Settings) -> None:
    _install(settings)
    database = Database(make_engine(settings.database_url))
    ledger, _ = installation._ledger(settings)
    with database.write() as tx:
        ledger.open_account(
            tx,
            owner_id="key_o",
            population="people",
            dataset_id="ds_a",
            unit={"kind": "row"},
            slots=100,
            facts="f" * 64,
            epsilon=2.0,
            delta=1e-6,
        )
        ledger.freeze(tx, "ds_a", Cause.RUN)
    arguments = ["unfreeze", "ds_a", "--reason", "mended", "--data-dir", str(settings.data_dir)]
    ended = RUNNER.invoke(cli, arguments)
    assert (ended.exit_code, ended.output) == (0, "ds_a: the account is not frozen any more\n")
    again = RUNNER.invoke(cli, arguments)
    assert (again.exit_code, again.output) == (1, "corevaultd: The account is not frozen.\n")
    with database.read() as session:
        assert ledger.entries(session, "ds_a", limit=1, before=None)[0].kind == "unfrozen"
        assert session.scalars(select(AuditEntry.reason)).all() == ["mended"]
    database.dispose()


def test_reset_audit_ends_an_alarm_and_prints_the_threshold(settings: Settings) -> None:
    _install(settings)
    database = Database(make_engine(settings.database_url))
    arguments = ["reset-audit", "--reason", "mended", "--data-dir", str(settings.data_dir)]
    for number, threshold in ((1, "2,000"), (2, "4,000")):
        assert RUNNER.invoke(cli, arguments).exit_code == 1
        with database.write() as tx:
            tx.execute(update(AuditState).values(alarmed_at=now()))
        ended = RUNNER.invoke(cli, arguments)
        expected = f"the continuous audit starts again (reset {number}); its threshold is now {threshold}\n"
        assert (ended.exit_code, ended.output) == (0, expected)
    database.dispose()


def test_failed_creation_of_an_admin_key_leaves_no_file(settings: Settings, tmp_path: Path) -> None:
    installation.create_keys(settings)  # but no database
    ended = RUNNER.invoke(cli, ["admin-key", str(tmp_path / "admin.key"), "--data-dir", str(settings.data_dir)])
    assert ended.exit_code == 1
    assert not (tmp_path / "admin.key").exists()


def test_admin_key_needs_the_identity_key(settings: Settings, tmp_path: Path) -> None:
    installation.migrate(settings)
    ended = RUNNER.invoke(cli, ["admin-key", str(tmp_path / "admin.key"), "--data-dir", str(settings.data_dir)])
    assert ended.exit_code == 1
    assert "identity.key" in ended.output
    assert not (tmp_path / "admin.key").exists()


@pytest.mark.parametrize("command", ["up", "api"])
@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.1", "example.test", ""])
def test_host_that_others_reach_is_refused_without_tls(command: str, host: str, tmp_path: Path) -> None:
    ended = RUNNER.invoke(cli, [command, "--host", host, "--port", "0", "--data-dir", str(tmp_path / "data")])
    assert ended.exit_code == 2
    assert "COREVAULT_BEHIND_TLS" in ended.output
    assert not (tmp_path / "data").exists()


@pytest.mark.parametrize("name", ["TLS_CERT", "TLS_KEY"])
def test_incomplete_tls_configuration_is_refused(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(f"COREVAULT_{name}", "/some/file.pem")
    assert RUNNER.invoke(cli, ["api"]).exit_code == 2


@pytest.mark.parametrize(
    ("host", "expected"), [("127.0.0.1", True), ("127.8.8.8", True), ("::1", True), ("localhost", True)]
)
def test_loopback_hosts_are_recognised(host: str, expected: bool) -> None:
    assert is_loopback(host) is expected


def test_invalid_setting_is_named_without_its_value(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COREVAULT_MAX_EPSILON", "canary-7461")
    ended = RUNNER.invoke(cli, ["migrate"])
    assert ended.exit_code == 2
    assert "COREVAULT_MAX_EPSILON" in ended.output
    assert "canary-7461" not in ended.output


def test_misspelt_setting_is_named_without_its_value(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COREVAULT_MAX_EPSLION", "canary-7461")
    monkeypatch.setenv("COREVAULT_MAX_EPSILON", "3")
    ended = RUNNER.invoke(cli, ["migrate", "--data-dir", str(settings.data_dir)])
    assert ended.exit_code == 0
    assert ended.output == "corevaultd: ignoring COREVAULT_MAX_EPSLION: no such setting\n"


def test_only_a_valid_key_of_this_installation_is_an_admin_key(settings: Settings, tmp_path: Path) -> None:
    _install(settings)
    file = tmp_path / "admin.key"
    assert installation.write_admin_key(settings, file)
    assert installation.has_admin_key(settings, file)
    elsewhere = Settings(data_dir=tmp_path / "elsewhere")
    _install(elsewhere)
    assert not installation.has_admin_key(elsewhere, file)
    assert not installation.has_admin_key(settings, tmp_path)
    file.write_bytes(b"\xff")
    assert not installation.has_admin_key(settings, file)


def test_up_warns_of_a_key_file_of_another_installation(
    settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(up, "supervise", lambda children: None)
    file = tmp_path / "admin.key"
    arguments = ["up", "--port", "0", "--data-dir", str(settings.data_dir), "--bootstrap-key", str(file)]
    for _ in range(2):
        assert f"{file} holds an administrator's key\n" in RUNNER.invoke(cli, arguments).stderr
    other = [*arguments[:4], str(tmp_path / "other"), *arguments[5:]]
    ended = RUNNER.invoke(cli, other)
    assert ended.exit_code == 0
    assert f"{file} exists but is not a valid admin key of this installation" in ended.stderr
    assert "holds" not in ended.output
    assert _admins(Settings(data_dir=tmp_path / "other")) == []
    assert RUNNER.invoke(cli, _remedy(ended.stderr)).exit_code == 0
    assert [key.role for key in _admins(Settings(data_dir=tmp_path / "other"))] == ["admin"]


def _remedy(message: str) -> list[str]:
    """Parse the command that a message suggests, and return its arguments."""
    command, *arguments = shlex.split(message.split("`")[1])
    assert command == "corevaultd"
    return arguments


def test_up_suggests_an_admin_key_until_there_is_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(up, "supervise", lambda children: None)
    monkeypatch.chdir(tmp_path)
    arguments = ["up", "--port", "0", "--data-dir", "a folder"]
    message = RUNNER.invoke(cli, arguments).stderr
    assert message.startswith("there is no API key yet: ")
    assert len(message.splitlines()) == 1
    assert RUNNER.invoke(cli, _remedy(message)).exit_code == 0
    assert (tmp_path / "admin.key").read_text().startswith("cv_")
    assert RUNNER.invoke(cli, arguments).stderr == ""


def test_port_in_use_is_reported_in_one_line(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        ended = RUNNER.invoke(cli, ["up", "--port", port, "--data-dir", str(tmp_path / "data")])
    assert ended.exit_code == 1
    assert f"listens on 127.0.0.1 port {port} already; choose another port with --port" in ended.output
    assert len(ended.output.splitlines()) == 1
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "command",
    [
        ["verify"],
        ["admin-key", "keys/admin.key"],
        ["reconcile"],
        ["grants", "--role", "service"],
        ["unfreeze", "ds_a", "--reason", "mended"],
    ],
    ids=lambda each: each[0],
)
@pytest.mark.parametrize("there", [False, True], ids=["absent", "another"])
def test_folder_without_an_installation_is_refused_and_unchanged(
    command: list[str], there: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "dta"
    if there:
        folder.mkdir()
    before = list(tmp_path.rglob("*"))
    ended = RUNNER.invoke(cli, [*command, "--data-dir", "dta"])
    assert ended.exit_code == 1
    remedy = "set --data-dir to the folder of an installation"
    assert ended.output == f"corevaultd: there is no installation in {folder}; {remedy}\n"
    assert list(tmp_path.rglob("*")) == before


@pytest.mark.parametrize(
    "command",
    [
        ["keys"],
        ["keys", "rotate", "opening"],
        ["keys", "rotate", "ledger"],
        ["keys", "rewrap"],
        ["keys", "escrow", "out", "--recipient", "recipient"],
        ["verify"],
        ["reconcile"],
        ["admin-key", "-"],
        ["grants", "--role", "service"],
    ],
    ids=" ".join,
)
def test_missing_folder_is_not_created(command: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    ended = RUNNER.invoke(cli, [*command, "--data-dir", "dta"])
    assert ended.exit_code == 1
    assert ended.output.startswith("corevaultd: ")
    assert len(ended.output.splitlines()) == 1
    assert list(tmp_path.iterdir()) == []


def test_api_does_not_create_a_missing_folder(tmp_path: Path) -> None:
    """It runs in a separate process, because it configures the process's logs."""
    command = (processes.find_script("corevaultd"), "api", "--port", "0", "--data-dir", "dta")
    ended = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False, cwd=tmp_path)
    assert ended.returncode == 1
    assert ended.stderr.startswith("corevaultd: ")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "command",
    [["verify"], ["reconcile"], ["admin-key", "-"], ["grants", "--role", "service"], ["keys", "rotate", "ledger"]],
    ids=" ".join,
)
def test_missing_database_is_not_created(command: list[str], settings: Settings) -> None:
    """SQLite would create an empty database, in which all checks pass."""
    installation.create_keys(settings)
    before = sorted(settings.data_dir.rglob("*"))
    ended = RUNNER.invoke(cli, [*command, "--data-dir", str(settings.data_dir)])
    assert ended.exit_code == 1
    assert "there is no database at" in ended.output
    assert "run 'corevaultd migrate'" in ended.output
    assert sorted(settings.data_dir.rglob("*")) == before


@pytest.mark.parametrize("url", ["mysql://h/x", "postgresql+asyncpg://h/x", "canary-7461", "sqlite+aiosqlite:///x"])
def test_unsupported_database_is_refused_with_a_remedy(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COREVAULT_DATABASE_URL", url)
    ended = RUNNER.invoke(cli, ["migrate"])
    assert ended.exit_code == 2
    assert "COREVAULT_DATABASE_URL must be postgresql://user@host/name or sqlite:////absolute/path" in ended.output
    assert url not in ended.output


def test_version_is_printed() -> None:
    shown = RUNNER.invoke(cli, ["--version"])
    assert (shown.exit_code, shown.output) == (0, f"corevaultd {version('corevault-server')}\n")


@pytest.mark.parametrize(
    "command", [["up", "--port", "0"], ["migrate"], ["keys"], ["verify"]], ids=lambda each: each[0]
)
def test_file_is_refused_as_data_dir(command: list[str], tmp_path: Path) -> None:
    file = tmp_path / "README.md"
    file.write_text("mine")
    ended = RUNNER.invoke(cli, [*command, "--data-dir", str(file)])
    assert ended.exit_code == 2
    assert ended.output == f"corevaultd: {file} is a file; set --data-dir to a folder\n"


def test_folder_in_use_is_refused_and_gets_no_lock_file(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    with installation.lock_folder(folder):
        ended = RUNNER.invoke(cli, ["up", "--port", "0", "--data-dir", str(folder)])
        assert ended.exit_code == 1
        assert "another corevaultd" in ended.output
    with installation.lock_folder(folder):
        assert list(folder.iterdir()) == []


def test_restart_delays_grow_up_to_a_bound() -> None:
    delays = [compute_delay_seconds(failures) for failures in range(1, 100)]
    assert delays == sorted(delays)
    assert delays[0] < 1
    assert delays[-1] == LONGEST_DELAY_SECONDS
