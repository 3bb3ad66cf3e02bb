"""Migrations make the declared tables, and the ledger's tables are append-only."""

from pathlib import Path

import pytest
import sqlalchemy as sa
from alembic.autogenerate import compare_metadata
from alembic.runtime.migration import MigrationContext
from sqlalchemy.exc import DatabaseError, IntegrityError

from app.db import Base, Database, UtcDateTime, make_engine, now
from app.db.migrations import is_at_head, upgrade
from tests.factories import rows


def _same_type(_: object, __: object, ___: object, ____: object, declared: sa.types.TypeEngine[object]) -> bool | None:
    return False if isinstance(declared, UtcDateTime) else None


def test_the_migrated_database_equals_the_declared_models(database: Database) -> None:
    with database.engine.connect() as connection:
        context = MigrationContext.configure(connection, opts={"compare_type": _same_type})
        assert compare_metadata(context, Base.metadata) == []


@pytest.mark.sqlite
def test_at_head_is_false_before_and_true_after_an_upgrade(tmp_path: Path) -> None:
    engine = make_engine(f"sqlite:///{tmp_path / 'fresh.sqlite3'}")
    assert not is_at_head(engine)
    upgrade(engine)
    assert is_at_head(engine)
    engine.dispose()


def test_an_upgrade_of_a_current_database_changes_nothing(database: Database) -> None:
    with database.write() as tx:
        key = rows.api_key(tx)
    upgrade(database.engine)
    with database.read() as session:
        assert session.execute(sa.text("SELECT id FROM api_keys")).scalars().all() == [key.id]


def _insert(database: Database, table: str, verb: str = "INSERT") -> None:
    """Make a row of any table: 1 in numeric columns, one text in the others."""
    declared = Base.metadata.tables[table]
    plain: dict[type, object] = {sa.Integer: 1, sa.Double: 1.0, sa.JSON: {}, UtcDateTime: now()}
    values = {column.name: plain.get(type(column.type), "{}") for column in declared.columns}
    values |= {"kind": "frozen"} if "kind" in values else {}
    with database.write() as tx:
        tx.execute(sa.insert(declared).prefix_with(verb.removeprefix("INSERT").strip()).values(values))


@pytest.mark.parametrize("table", ["ledger_entries", "ledger_checkpoints"])
@pytest.mark.parametrize("statement", ["UPDATE {} SET sequence = 2", "DELETE FROM {}"])
def test_rows_of_the_chains_cannot_be_changed_or_removed(database: Database, table: str, statement: str) -> None:
    """W11: committed entries cannot be altered or lost without detection."""
    _insert(database, table)
    with pytest.raises(DatabaseError, match="append-only"), database.write() as tx:
        tx.execute(sa.text(statement.format(table)))
    with database.read() as session:
        assert session.execute(sa.text(f"SELECT sequence FROM {table}")).scalars().all() == [1]


@pytest.mark.sqlite
@pytest.mark.parametrize("table", ["ledger_entries", "ledger_checkpoints"])
def test_rows_of_the_chains_cannot_be_replaced(sqlite_file: Path, table: str) -> None:
    """W11: SQLite's REPLACE removes rows without the triggers on DELETE."""
    database = Database(make_engine(f"sqlite:///{sqlite_file}"))
    _insert(database, table)
    with pytest.raises(IntegrityError, match="append-only"):
        _insert(database, table, "INSERT OR REPLACE")
    database.dispose()
