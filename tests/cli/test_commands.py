"""The commands that need no second process."""

import shlex
import socket
import subprocess
from importlib.metadata import version
from pathlib import Path

import pytest
from sqlalchemy import select
from typer.testing import CliRunner

from app.audit.models import AuditEntry
from app.auth.models import ApiKey
from app.cli import installation, up
from app.cli.commands import cli
from app.cli.sockets import is_loopback
from app.cli.supervisor import LONGEST_DELAY_SECONDS, delay_seconds
from app.config import Settings
from app.db import Database, make_engine
from app.db.migrations import at_head
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
        found = list(session.scalars(select(ApiKey)))
    database.dispose()
    return found


def _install(settings: Settings) -> None:
    installation.migrate(settings)
    installation.create_keys(settings)


def test_help_names_every_command() -> None:
    shown = RUNNER.invoke(cli, ["--help"])
    assert shown.exit_code == 0
    for command in ("up", "api", "migrate", "keys", "admin-key"):
        assert command in shown.output


def test_migrate_makes_folder_and_tables(settings: Settings) -> None:
    assert RUNNER.invoke(cli, ["migrate", "--data-dir", str(settings.data_dir)]).exit_code == 0
    engine = make_engine(settings.database_url)
    assert at_head(engine)
    engine.dispose()


def test_migrate_explains_a_database_that_is_away(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COREVAULT_DATABASE_URL", "postgresql+psycopg://127.0.0.1:1/none")
    ended = RUNNER.invoke(cli, ["migrate"])
    assert ended.exit_code == 1
    assert "COREVAULT_DATABASE_URL" in ended.output
    assert len(ended.output.splitlines()) == 1


def test_keys_share_with_the_api_only_what_seals_signs_and_verifies(settings: Settings) -> None:
    """W1: the folder that the API is given holds no key that opens."""
    settings.data_dir.mkdir()
    assert RUNNER.invoke(cli, ["keys", "--data-dir", str(settings.data_dir)]).exit_code == 0
    share = settings.keys_dir / "api"
    names = {"sealing.pub", "ledger.key", "ledger.pub", "release.pub", "identity.key"}
    assert {file.name for file in share.iterdir()} == names
    opening = load_worker_keys(settings.keys_dir).opening_key
    assert all(file.read_text() != (settings.keys_dir / "opening.key").read_text() for file in share.iterdir())
    assert load_api_keys(share).sealing_key != opening


def test_keys_that_exist_stay(settings: Settings) -> None:
    installation.create_keys(settings)
    before = load_worker_keys(settings.keys_dir)
    installation.create_keys(settings)
    assert load_worker_keys(settings.keys_dir) == before


def test_only_the_worker_is_told_where_the_opening_key_lies(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """W1: nothing in the API's environment leads to it."""
    monkeypatch.setenv("COREVAULT_KEYS_DIR", str(settings.keys_dir))
    share = installation.create_keys(settings)
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        api = up.api_child(settings, listener, share)
    worker = up.worker_child(settings)
    assert worker.environment["COREVAULT_KEYS_DIR"] == str(settings.keys_dir)
    assert api.environment["COREVAULT_KEYS_DIR"] == str(share)
    assert not (Path(api.environment["COREVAULT_KEYS_DIR"]) / "opening.key").exists()


def test_an_admin_key_is_the_files_only_content(settings: Settings, tmp_path: Path) -> None:
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


def test_unfreeze_ends_a_freeze_and_leaves_its_reason(settings: Settings) -> None:
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
    assert (ended.exit_code, ended.output) == (0, "ds_a: the account goes on\n")
    again = RUNNER.invoke(cli, arguments)
    assert (again.exit_code, again.output) == (1, "corevaultd: The account is not frozen.\n")
    with database.read() as session:
        assert ledger.entries(session, "ds_a", limit=1, before=None)[0].kind == "unfrozen"
        assert session.scalars(select(AuditEntry.reason)).all() == ["mended"]
    database.dispose()


def test_a_file_whose_key_was_not_created_does_not_stay(settings: Settings, tmp_path: Path) -> None:
    installation.create_keys(settings)  # but no database
    ended = RUNNER.invoke(cli, ["admin-key", str(tmp_path / "admin.key"), "--data-dir", str(settings.data_dir)])
    assert ended.exit_code == 1
    assert not (tmp_path / "admin.key").exists()


def test_an_admin_key_needs_the_key_that_it_is_hashed_under(settings: Settings, tmp_path: Path) -> None:
    installation.migrate(settings)
    ended = RUNNER.invoke(cli, ["admin-key", str(tmp_path / "admin.key"), "--data-dir", str(settings.data_dir)])
    assert ended.exit_code == 1
    assert "identity.key" in ended.output
    assert not (tmp_path / "admin.key").exists()


@pytest.mark.parametrize("command", ["up", "api"])
@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.1", "example.test", ""])
def test_other_machines_are_never_served_in_the_clear(command: str, host: str, tmp_path: Path) -> None:
    ended = RUNNER.invoke(cli, [command, "--host", host, "--port", "0", "--data-dir", str(tmp_path / "data")])
    assert ended.exit_code == 2
    assert "COREVAULT_BEHIND_TLS" in ended.output
    assert not (tmp_path / "data").exists()


@pytest.mark.parametrize("name", ["TLS_CERT", "TLS_KEY"])
def test_half_a_tls_configuration_is_refused(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(f"COREVAULT_{name}", "/some/file.pem")
    assert RUNNER.invoke(cli, ["api"]).exit_code == 2


@pytest.mark.parametrize(
    ("host", "expected"), [("127.0.0.1", True), ("127.8.8.8", True), ("::1", True), ("localhost", True)]
)
def test_loopback(host: str, expected: bool) -> None:
    assert is_loopback(host) is expected


def test_a_setting_that_is_not_valid_is_named_without_its_value(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COREVAULT_MAX_EPSILON", "canary-7461")
    ended = RUNNER.invoke(cli, ["migrate"])
    assert ended.exit_code == 2
    assert "COREVAULT_MAX_EPSILON" in ended.output
    assert "canary-7461" not in ended.output


def test_a_misspelt_setting_is_named_without_its_value(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COREVAULT_MAX_EPSLION", "canary-7461")
    monkeypatch.setenv("COREVAULT_MAX_EPSILON", "3")
    ended = RUNNER.invoke(cli, ["migrate", "--data-dir", str(settings.data_dir)])
    assert ended.exit_code == 0
    assert ended.output == "corevaultd: ignoring COREVAULT_MAX_EPSLION: no such setting\n"


def test_only_a_file_with_a_valid_admin_key_of_this_installation_passes_for_one(
    settings: Settings, tmp_path: Path
) -> None:
    _install(settings)
    file = tmp_path / "admin.key"
    assert installation.write_admin_key(settings, file)
    assert installation.holds_admin_key(settings, file)
    elsewhere = Settings(data_dir=tmp_path / "elsewhere")
    _install(elsewhere)
    assert not installation.holds_admin_key(elsewhere, file)
    assert not installation.holds_admin_key(settings, tmp_path)
    file.write_bytes(b"\xff")
    assert not installation.holds_admin_key(settings, file)


def test_up_says_that_a_key_file_of_another_installation_opens_nothing(
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
    assert f"{file} exists but is no valid admin key here" in ended.stderr
    assert "holds" not in ended.output
    assert _admins(Settings(data_dir=tmp_path / "other")) == []
    assert RUNNER.invoke(cli, _remedy(ended.stderr)).exit_code == 0
    assert [key.role for key in _admins(Settings(data_dir=tmp_path / "other"))] == ["admin"]


def _remedy(said: str) -> list[str]:
    """The arguments of the command that a message suggests, as a shell would take them."""
    command, *arguments = shlex.split(said.split("`")[1])
    assert command == "corevaultd"
    return arguments


def test_up_says_how_to_get_an_administrator_until_there_is_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(up, "supervise", lambda children: None)
    monkeypatch.chdir(tmp_path)
    arguments = ["up", "--port", "0", "--data-dir", "a folder"]
    said = RUNNER.invoke(cli, arguments).stderr
    assert said.startswith("nobody can sign in yet: ")
    assert len(said.splitlines()) == 1
    assert RUNNER.invoke(cli, _remedy(said)).exit_code == 0
    assert (tmp_path / "admin.key").read_text().startswith("cv_")
    assert RUNNER.invoke(cli, arguments).stderr == ""


def test_a_port_in_use_is_one_clear_line(tmp_path: Path) -> None:
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
def test_a_mistyped_folder_holds_no_installation_and_stays_as_it_is(
    command: list[str], there: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "dta"
    if there:
        folder.mkdir()
    before = list(tmp_path.rglob("*"))
    ended = RUNNER.invoke(cli, [*command, "--data-dir", "dta"])
    assert ended.exit_code == 1
    assert ended.output == f"corevaultd: there is no installation in {folder}; --data-dir names the folder of one\n"
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
def test_a_mistyped_folder_is_not_made(command: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    ended = RUNNER.invoke(cli, [*command, "--data-dir", "dta"])
    assert ended.exit_code == 1
    assert ended.output.startswith("corevaultd: ")
    assert len(ended.output.splitlines()) == 1
    assert list(tmp_path.iterdir()) == []


def test_an_api_on_a_mistyped_folder_does_not_make_it(tmp_path: Path) -> None:
    """In a process of its own, which it configures the logs of."""
    command = (up.script("corevaultd"), "api", "--port", "0", "--data-dir", "dta")
    ended = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False, cwd=tmp_path)
    assert ended.returncode == 1
    assert ended.stderr.startswith("corevaultd: ")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "command",
    [["verify"], ["reconcile"], ["admin-key", "-"], ["grants", "--role", "service"], ["keys", "rotate", "ledger"]],
    ids=" ".join,
)
def test_a_database_that_is_not_there_is_not_made(command: list[str], settings: Settings) -> None:
    """To open one of SQLite would make it, and what then is found to hold holds nothing."""
    installation.create_keys(settings)
    before = sorted(settings.data_dir.rglob("*"))
    ended = RUNNER.invoke(cli, [*command, "--data-dir", str(settings.data_dir)])
    assert ended.exit_code == 1
    assert "it is not migrated; run 'corevaultd migrate'" in ended.output
    assert sorted(settings.data_dir.rglob("*")) == before


@pytest.mark.parametrize("url", ["mysql://h/x", "postgresql+asyncpg://h/x", "canary-7461", "sqlite+aiosqlite:///x"])
def test_another_database_is_refused_in_words(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COREVAULT_DATABASE_URL", url)
    ended = RUNNER.invoke(cli, ["migrate"])
    assert ended.exit_code == 2
    assert "COREVAULT_DATABASE_URL (use postgresql://user@host/name or sqlite:////absolute/path)" in ended.output
    assert url not in ended.output


def test_the_version_is_printed() -> None:
    shown = RUNNER.invoke(cli, ["--version"])
    assert (shown.exit_code, shown.output) == (0, f"corevaultd {version('corevault-server')}\n")


@pytest.mark.parametrize(
    "command", [["up", "--port", "0"], ["migrate"], ["keys"], ["verify"]], ids=lambda each: each[0]
)
def test_a_file_is_no_folder_for_an_installation(command: list[str], tmp_path: Path) -> None:
    file = tmp_path / "README.md"
    file.write_text("mine")
    ended = RUNNER.invoke(cli, [*command, "--data-dir", str(file)])
    assert ended.exit_code == 2
    assert ended.output == f"corevaultd: {file} is a file; --data-dir names a folder\n"


def test_a_folder_in_use_is_refused_and_left_without_a_lock_file(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    with installation.lock_folder(folder):
        ended = RUNNER.invoke(cli, ["up", "--port", "0", "--data-dir", str(folder)])
        assert ended.exit_code == 1
        assert "another corevaultd" in ended.output
    with installation.lock_folder(folder):
        assert list(folder.iterdir()) == []


def test_delays_grow_up_to_a_bound() -> None:
    delays = [delay_seconds(failures) for failures in range(1, 100)]
    assert delays == sorted(delays)
    assert delays[0] < 1
    assert delays[-1] == LONGEST_DELAY_SECONDS
