"""Revision 0004: constraints on the ledger's rows, and the upgrade of existing rows."""

from typing import Any

import pytest
import sqlalchemy as sa
from sqlalchemy.exc import DatabaseError, IntegrityError

from app.db import Database, make_engine
from app.db.migrations import downgrade, upgrade
from app.ledger import Budget, Ledger
from app.vault.signing import Signer
from tests.ledger.support import SEED, Bench, costing

BREACHES: dict[str, list[dict[str, Any]]] = {
    "ledger_accounts": [{"sequence": 0}, {"epsilon_used": -0.1}, {"epsilon_used": 2.1}, {"epsilon_limit": 0.1}],
    "ledger_datasets": [{"refused": -1}],
    "ledger_reservations": [{"state": "refunded"}, {"sequence": 0}],
}


def spend(url: str) -> Bench:
    bench = Bench(Database(make_engine(url)), Ledger(Signer(SEED), max_epsilon=20.0))
    bench.open_account("ds_a")
    bench.run("job_1", costing(0.5))
    bench.reserve("job_2", costing(0.25))
    return bench


@pytest.mark.parametrize(
    ("table", "values"), [(table, values) for table, breaches in BREACHES.items() for values in breaches]
)
def test_an_impossible_state_is_refused(database_url: str, table: str, values: dict[str, Any]) -> None:
    """W9: the database refuses it even if the ledger's code does not."""
    bench = spend(database_url)
    assigned = ", ".join(f"{name} = :{name}" for name in values)
    with pytest.raises(IntegrityError), bench.database.write() as tx:
        tx.execute(sa.text(f"UPDATE {table} SET {assigned}"), values)
    assert bench.verify() == ()
    bench.database.dispose()


@pytest.mark.parametrize("change", ["kind = 'refunded'", "sequence = -sequence", "epsilon_after = -1"])
def test_an_impossible_entry_is_refused(database_url: str, change: str) -> None:
    bench = spend(database_url)
    name, value = change.split(" = ")
    columns = [column["name"] for column in sa.inspect(bench.database.engine).get_columns("ledger_entries")]
    copied = ", ".join("sequence + 100" if column == "sequence" != name else column for column in columns)
    copied = copied.replace(name, value, 1) if name != "sequence" else copied.replace("sequence", value, 1)
    query = f"INSERT INTO ledger_entries ({', '.join(columns)}) SELECT {copied} FROM ledger_entries"
    with pytest.raises(IntegrityError), bench.database.write() as tx:
        tx.execute(sa.text(query))
    bench.database.dispose()


def test_an_upgrade_keeps_every_account(empty_database_url: str) -> None:
    """W11: accounts from before the constraints verify, can be used, and are append-only."""
    bench, before = spent_at(empty_database_url, "0003")
    upgrade(bench.database.engine)
    assert bench.budget() == before
    assert bench.verify() == ()
    bench.open("job_2")
    with pytest.raises(DatabaseError, match="append-only"), bench.database.write() as tx:
        tx.execute(sa.text("DELETE FROM ledger_entries"))
    with bench.database.read() as session:
        used, limit = session.execute(sa.text("SELECT epsilon_used, epsilon_limit FROM ledger_accounts")).one()
    assert (used, limit) == (pytest.approx(before.spent.epsilon + before.reserved.epsilon), 2.0)
    bench.database.dispose()


def spent_at(url: str, revision: str) -> tuple[Bench, Budget]:
    """Make the rows of a spent account in a database at ``revision``."""
    engine = make_engine(url)
    upgrade(engine)
    engine.dispose()
    bench = spend(url)
    before = bench.budget()
    downgrade(bench.database.engine, revision)
    columns = {column["name"] for column in sa.inspect(bench.database.engine).get_columns("ledger_accounts")}
    assert "epsilon_used" not in columns
    return bench, before
