"""Two roles on PostgreSQL: the owner migrates, and the service cannot alter the ledger."""

import secrets
from collections.abc import Iterator
from dataclasses import dataclass
from urllib.parse import urlsplit, urlunsplit

import pytest
import sqlalchemy as sa
from sqlalchemy.exc import DBAPIError, ProgrammingError

from app.cli.installation import RESTRICTED
from app.db import Database, make_engine
from app.db.grants import grant
from app.db.migrations import upgrade
from app.ledger import Cause, Ledger
from app.vault.signing import Signer
from tests.factories import stack
from tests.ledger.support import SEED, Bench, costing

pytestmark = pytest.mark.services
ALTERATIONS = ["UPDATE {} SET sequence = sequence + 1", "DELETE FROM {}", "TRUNCATE {}"]


@dataclass
class Roles:
    """Connections of owner and service to the same database."""

    owner: sa.Engine
    bench: Bench
    service: str


@pytest.fixture
def roles() -> Iterator[Roles]:
    """A migrated database with grants, and an account with a settled job."""
    owner, service = (f"{name}_{secrets.token_hex(4)}" for name in ("owner", "service"))
    with stack.fresh_database() as url:
        admin = sa.create_engine(url, isolation_level="AUTOCOMMIT", poolclass=sa.NullPool)
        name = urlsplit(url).path.lstrip("/")
        with admin.connect() as connection:
            for statement in (
                f"CREATE ROLE {owner} LOGIN",
                f"CREATE ROLE {service} LOGIN",
                f"GRANT CREATE ON DATABASE {name} TO {owner}",
                f"GRANT USAGE, CREATE ON SCHEMA public TO {owner}",
            ):
                connection.execute(sa.text(statement))
        engine = make_engine(of(url, owner))
        upgrade(engine)
        grant(engine, service, RESTRICTED)
        bench = Bench(Database(make_engine(of(url, service))), Ledger(Signer(SEED), max_epsilon=20.0))
        yield Roles(engine, bench, service)
        bench.database.dispose()
        with engine.begin() as connection:
            connection.execute(sa.text(f"DROP OWNED BY {owner}"))
        engine.dispose()
        with admin.connect() as connection:
            connection.execute(sa.text(f"DROP OWNED BY {owner}, {service}"))
            connection.execute(sa.text(f"DROP ROLE {owner}, {service}"))
        admin.dispose()


def of(url: str, role: str) -> str:
    parts = urlsplit(url)
    return urlunsplit(parts._replace(netloc=f"{role}@{parts.hostname}:{parts.port}"))


def test_the_service_runs_on_its_grants(roles: Roles) -> None:
    bench = roles.bench
    bench.open_account("ds_a")
    bench.open_account("ds_b", epsilon=0.5)
    bench.run("job_1", costing(0.3), "ds_b")
    bench.reserve("job_2", costing(0.3))
    bench.void("job_2")
    bench.change_limit(3.0, 1e-6)
    assert bench.write(bench.ledger.verify_and_freeze) == ()
    bench.write(lambda tx: bench.ledger.freeze(tx, "ds_a", Cause.RUN))
    assert bench.verify() == ()


@pytest.mark.parametrize("table", ["ledger_entries", "ledger_checkpoints"])
@pytest.mark.parametrize("alteration", ALTERATIONS)
def test_chains_are_append_only_for_both_roles(roles: Roles, table: str, alteration: str) -> None:
    """W11: missing grants stop the service, and the trigger stops the owner."""
    roles.bench.open_account("ds_a")
    roles.bench.checkpoint()
    statement = sa.text(alteration.format(table))
    with pytest.raises(ProgrammingError, match="permission denied"), roles.bench.database.write() as tx:
        tx.execute(statement)
    with pytest.raises(DBAPIError, match="append-only"), roles.owner.begin() as connection:
        connection.execute(statement)
    assert roles.bench.verify() == ()


@pytest.mark.parametrize(
    "statement",
    [
        "DELETE FROM ledger_accounts",
        "DELETE FROM ledger_reservations",
        "UPDATE ledger_fingerprints SET account_id = 'acc_x'",
        "ALTER TABLE ledger_entries DISABLE TRIGGER ALL",
        "DROP TABLE ledger_entries",
        "UPDATE alembic_version SET version_num = '0001'",
        "CREATE TABLE mine (id integer)",
    ],
)
def test_the_service_cannot_delete_entries_or_change_tables(roles: Roles, statement: str) -> None:
    with pytest.raises(DBAPIError, match=r"permission denied|must be owner"), roles.bench.database.write() as tx:
        tx.execute(sa.text(statement))


def test_grants_can_be_repeated(roles: Roles) -> None:
    with roles.owner.begin() as connection:
        connection.execute(sa.text(f"GRANT ALL ON ledger_entries TO {roles.service}"))
    grant(roles.owner, roles.service, RESTRICTED)
    with pytest.raises(ProgrammingError, match="permission denied"), roles.bench.database.write() as tx:
        tx.execute(sa.text("DELETE FROM ledger_entries"))


def test_a_role_that_ignores_grants_is_refused(roles: Roles) -> None:
    for role, reason in [("corevault", "superuser"), ("nobody_here", "no such role")]:
        with pytest.raises(ValueError, match=reason):
            grant(roles.owner, role, RESTRICTED)
    with pytest.raises(ValueError, match="owner"):
        grant(roles.owner, str(roles.owner.url.username), RESTRICTED)
