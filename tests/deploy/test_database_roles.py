"""The script that creates the database roles, and the containers' commands.

Both run on a real PostgreSQL.
"""

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
import sqlalchemy as sa
from sqlalchemy.exc import OperationalError, ProgrammingError
from typer.testing import CliRunner

from app.cli.commands import cli
from support.servers import Postgres, find_postgres_program
from tests.deploy.test_compose import COMPOSE, ROOT, SERVICES

pytestmark = pytest.mark.services
CLOSED = "host all corevault 127.0.0.1/32 trust\nhost all all 127.0.0.1/32 scram-sha-256\n"


@pytest.fixture
def passwords(tmp_path: Path) -> Path:
    """The folder that the containers mount as /run/secrets."""
    for name in COMPOSE["secrets"]:
        (tmp_path / name).write_text(f"the {name}, with ' and \\ in it")
    return tmp_path


@pytest.fixture
def server(passwords: Path) -> Iterator[Postgres]:
    """Start a server like the container's: an empty database, the script, and only password access."""
    with Postgres() as postgres:
        _psql(postgres, "CREATE DATABASE corevault", "postgres")
        script = (ROOT / COMPOSE["configs"]["roles"]["file"]).read_text()
        _psql(postgres, script.replace("/run/secrets", str(passwords)), "corevault")
        (postgres.folder / "data" / "pg_hba.conf").write_text(CLOSED)
        _psql(postgres, "SELECT pg_reload_conf()", "postgres")
        yield postgres


def _psql(server: Postgres, script: str, database: str) -> None:
    address = ["--host=127.0.0.1", f"--port={server.port}", "--username=corevault", f"--dbname={database}"]
    command = [str(find_postgres_program("psql")), "--no-psqlrc", "--set=ON_ERROR_STOP=1", *address]
    subprocess.run(command, input=script.encode(), check=True, capture_output=True)


def settings(service: str, server: Postgres, passwords: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Set the database settings of the container of ``service``."""
    told = SERVICES[service]["environment"]
    url = told["COREVAULT_DATABASE_URL"].replace("@postgres", f"@127.0.0.1:{server.port}")
    monkeypatch.setenv("COREVAULT_DATABASE_URL", url)
    password = Path(told["COREVAULT_DATABASE_PASSWORD_FILE"]).name
    monkeypatch.setenv("COREVAULT_DATABASE_PASSWORD_FILE", str(passwords / password))
    monkeypatch.setenv("COREVAULT_DATA_DIR", str(passwords / "data"))


def invoke(*command: str) -> str:
    result = CliRunner().invoke(cli, command)
    assert result.exit_code == 0, result.output
    return result.output


def connect(server: Postgres, role: str, password: str) -> sa.Connection:
    url = sa.URL.create("postgresql+psycopg", role, password, "127.0.0.1", server.port, "corevault")
    return sa.create_engine(url, poolclass=sa.NullPool).connect()


def test_the_owner_migrates_and_the_service_runs_on_its_grants(
    server: Postgres, passwords: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """W11: the API's role can neither remove an entry nor drop the triggers."""
    settings("migrate", server, passwords, monkeypatch)
    for _ in range(2):  # every start of the containers runs it again
        invoke(*SERVICES["migrate"]["command"][1:])
    settings("api", server, passwords, monkeypatch)
    invoke("keys")
    assert invoke("admin-key", "-").startswith("cv_")
    password = (passwords / "service_password").read_text()
    for statement in ("DELETE FROM ledger_entries", "DROP TABLE ledger_entries", "CREATE TABLE mine (id integer)"):
        with (
            connect(server, "corevault_service", password) as service,
            pytest.raises(ProgrammingError, match=r"permission denied|must be owner"),
        ):
            service.execute(sa.text(statement))


def test_each_password_opens_one_role(server: Postgres, passwords: Path) -> None:
    secrets = {role: (passwords / f"{role}_password").read_text() for role in ("owner", "service")}
    for role, password in secrets.items():
        with connect(server, f"corevault_{role}", password) as connection:
            rights = sa.text("SELECT rolsuper OR rolcreatedb OR rolcreaterole FROM pg_roles WHERE rolname = user")
            assert connection.scalar(rights) is False
    with pytest.raises(OperationalError, match="password authentication failed"):
        connect(server, "corevault_owner", secrets["service"])
