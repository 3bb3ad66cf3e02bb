"""W11: altered or lost entries are detected, and their account is frozen."""

import shutil
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from app.db import Base, Database, WriteSession, make_engine
from app.errors import CorevaultError, StateConflict
from app.ledger import Cause, Ledger
from app.ledger.account import locked_account
from app.ledger.integrity import chain, snapshots
from app.ledger.integrity.chain import Head
from app.vault.signing import Signer
from tests.ledger.support import SEED, Bench, costing

pytestmark = pytest.mark.sqlite

TABLES = Base.metadata.tables
COLUMNS = [
    (name, column.name)
    for name in ("ledger_accounts", "ledger_entries", "ledger_checkpoints", "ledger_reservations", "ledger_datasets")
    for column in TABLES[name].columns
    if (name, column.name) != ("ledger_datasets", "refused")  # a count for information, outside of the chain
]
ORDERED = {
    "ledger_accounts": "id",
    "ledger_entries": "sequence",
    "ledger_checkpoints": "sequence",
    "ledger_reservations": "sequence",
    "ledger_datasets": "dataset_id",
}


@pytest.fixture(scope="module")
def spent_file(migrated_file: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two accounts, one with a settled and an open job; without triggers."""
    path = Path(shutil.copy(migrated_file, tmp_path_factory.mktemp("spent")))
    bench = Bench(Database(make_engine(f"sqlite:///{path}")), Ledger(Signer(SEED), max_epsilon=20.0))
    bench.open_account("ds_a")
    bench.open_account("ds_b", epsilon=1.0)
    bench.open_account("ds_other", population="others")
    bench.run("job_other", costing(0.2), "ds_other")
    bench.run("job_1", costing(0.2), "ds_b")
    bench.reserve("job_2", costing(0.2))
    with bench.database.write() as tx:
        for name in tx.scalars(sa.text("SELECT name FROM sqlite_master WHERE type = 'trigger'")).all():
            tx.execute(sa.text(f"DROP TRIGGER {name}"))
    assert bench.verify() == ()
    bench.database.dispose()
    return path


@pytest.fixture
def bench(spent_file: Path, tmp_path: Path) -> Iterator[Bench]:
    path = shutil.copy(spent_file, tmp_path)
    bench = Bench(Database(make_engine(f"sqlite:///{path}")), Ledger(Signer(SEED), max_epsilon=20.0))
    yield bench
    bench.database.dispose()


@pytest.fixture
def victim(bench: Bench) -> str:
    """The id of the altered account."""
    return account_of(bench, "ds_a")


def account_of(bench: Bench, dataset_id: str) -> str:
    with bench.database.read() as session:
        query = sa.text("SELECT account_id FROM ledger_datasets WHERE dataset_id = :id")
        return str(session.scalar(query, {"id": dataset_id}))


def account_column(name: str) -> str:
    return "id" if name == "ledger_accounts" else "account_id"


def edit(bench: Bench, name: str, account_id: str, change: Callable[[Any], dict[str, Any]], *, newest: bool) -> None:
    """Change one of the account's rows in one table."""
    table = TABLES[name]
    order = table.c[ORDERED[name]]
    query = sa.select(table).where(table.c[account_column(name)] == account_id)
    with bench.database.write() as tx:
        row = tx.execute(query.order_by(order.desc() if newest else order).limit(1)).one()
        tx.execute(sa.text("PRAGMA ignore_check_constraints = ON"))  # an intruder asks no permission
        same = [column == getattr(row, column.name) for column in table.primary_key.columns]
        tx.execute(sa.update(table).where(*same).values(**change(row)))
        tx.execute(sa.text("PRAGMA ignore_check_constraints = OFF"))


def altered(value: Any) -> Any:
    """Another value of the same kind."""
    match value:
        case None:
            return datetime(2020, 1, 1, tzinfo=UTC)
        case datetime():
            return value + timedelta(microseconds=1)
        case dict():
            return {**value, "extra": 1}
        case int() | float():
            return value + 1_000
        case _:
            return f"{value}x"


@pytest.mark.parametrize("newest", [False, True], ids=["oldest", "newest"])
@pytest.mark.parametrize(("name", "column"), COLUMNS, ids=[".".join(pair) for pair in COLUMNS])
def test_an_edit_of_any_column_is_detected(bench: Bench, victim: str, name: str, column: str, newest: bool) -> None:
    """W11: each column is covered by a hash."""

    def change(row: Any) -> dict[str, Any]:
        value = getattr(row, column)
        return {column: "job_x" if column == "job_id" and value is None else altered(value)}

    edit(bench, name, victim, change, newest=newest)
    named = bench.write(bench.ledger.verify_and_freeze)
    assert victim in named
    assert account_of(bench, "ds_other") not in named
    with pytest.raises(CorevaultError):
        bench.reserve("job_3", costing(0.1))


@pytest.mark.parametrize(
    ("where", "path"),
    [
        *(("balance", "spent"), ("balance", "reserved"), ("limits", "bounds")),
        *(("snapshot", "spent"), ("snapshot", "reserved"), ("snapshot", "bounds")),
    ],
)
def test_a_cached_amount_is_not_trusted(bench: Bench, victim: str, where: str, path: str) -> None:
    """W11: amounts are recomputed from entries."""

    def change(row: Any) -> dict[str, Any]:
        kept = getattr(row, where)
        balance = kept["balance"] if where == "snapshot" else kept
        tranche = balance["tranches"][0]
        faked = {**balance, "tranches": [{**tranche, path: " ".join(["7"] * len(tranche[path].split()))}]}
        return {where: {**kept, "balance": faked} if where == "snapshot" else faked}

    edit(bench, "ledger_accounts", victim, change, newest=True)
    with pytest.raises(StateConflict):
        bench.reserve("job_3", costing(0.1))
    assert bench.verify() == (victim,)


@pytest.mark.parametrize("where", ["balance", "limits"])
def test_a_balance_that_cannot_be_read_is_refused_and_frozen(bench: Bench, victim: str, where: str) -> None:
    """W11: also for a preview."""
    edit(bench, "ledger_accounts", victim, lambda _: {where: {}}, newest=True)
    for read in (bench.budget, lambda: bench.preview(costing(0.1))):
        with pytest.raises(StateConflict, match="frozen"):
            read()
    with pytest.raises(StateConflict, match="frozen"):
        bench.reserve("job_3", costing(0.1))
    with bench.database.read() as session:
        query = sa.text("SELECT frozen_at IS NOT NULL FROM ledger_accounts WHERE id = :id")
        assert session.scalar(query, {"id": victim})


def test_a_mismatch_freezes_for_good(bench: Bench, victim: str) -> None:
    """W11: the freeze survives a rollback of the transaction, and a repair by the attacker."""
    edit(bench, "ledger_accounts", victim, lambda row: {"balance": {**row.balance, "settled": 0}}, newest=True)
    with pytest.raises(StateConflict):
        bench.reserve("job_3", costing(0.1))
    edit(bench, "ledger_accounts", victim, lambda row: {"balance": {**row.balance, "settled": 1}}, newest=True)
    assert bench.verify() == ()
    with pytest.raises(StateConflict):
        bench.reserve("job_3", costing(0.1))
    with bench.database.read() as session:
        kinds = [entry.kind for entry in bench.ledger.entries(session, "ds_a", limit=1, before=None)]
    assert kinds == ["frozen"]
    bench.reserve("job_4", costing(0.1), "ds_other")


def test_a_freeze_cannot_be_removed_by_hand(bench: Bench, victim: str) -> None:
    bench.write(lambda tx: bench.ledger.freeze(tx, "ds_a", Cause.RUN))
    assert bench.verify() == ()
    edit(bench, "ledger_accounts", victim, lambda row: {"frozen_at": None}, newest=True)
    assert bench.verify() == (victim,)
    with pytest.raises(StateConflict):
        bench.reserve("job_3", costing(0.1))


def test_the_loss_of_any_entry_is_detected(bench: Bench, victim: str) -> None:
    entries = TABLES["ledger_entries"]
    with bench.database.read() as session:
        newest = session.scalar(sa.select(sa.func.max(entries.c.sequence)).where(entries.c.account_id == victim))
    assert newest is not None
    for sequence in range(1, newest + 1):
        lost = (entries.c.account_id == victim) & (entries.c.sequence == sequence)
        with bench.database.write() as tx:
            row = tx.execute(sa.select(entries).where(lost)).one()
            tx.execute(sa.delete(entries).where(lost))
        assert victim in bench.verify()
        with bench.database.write() as tx:
            tx.execute(sa.insert(entries).values(**row._mapping))
    assert bench.verify() == ()


def remembered(bench: Bench) -> dict[str, list[dict[str, Any]]]:
    """Every row of accounts, entries and reservations, but no checkpoint."""
    with bench.database.read() as session:
        return {
            name: [dict(row) for row in session.execute(sa.select(TABLES[name])).mappings()]
            for name in ("ledger_accounts", "ledger_entries", "ledger_reservations")
        }


def roll_back(tx: WriteSession, old: dict[str, list[dict[str, Any]]]) -> None:
    for name, kept in old.items():
        tx.execute(sa.delete(TABLES[name]))
        tx.execute(sa.insert(TABLES[name]), kept)


def test_a_rollback_of_one_account_is_detected_by_checkpoints(bench: Bench, victim: str) -> None:
    """W11: restoring an old state cannot refund budget, even if all of the account's rows fit together."""
    old = remembered(bench)
    bench.run("job_3", costing(0.4))
    with bench.database.write() as tx:
        roll_back(tx, old)
    assert bench.verify() == (victim,)
    with pytest.raises(StateConflict):
        bench.reserve("job_3", costing(0.4))


def test_a_rollback_to_a_cached_head_is_detected(bench: Bench, victim: str) -> None:
    """W11: the cached head matches again, but another process's checkpoint is newer."""
    bench.reserve("job_3", costing(0.1))
    old = remembered(bench)
    other = Bench(bench.database, Ledger(bench.ledger.signer, max_epsilon=20.0))
    other.run("job_4", costing(0.4))
    with bench.database.write() as tx:
        roll_back(tx, old)
    with pytest.raises(StateConflict, match="frozen"):
        bench.reserve("job_5", costing(0.1))
    assert bench.verify() == (victim,)


def test_an_entry_after_the_head_is_detected(bench: Bench, victim: str) -> None:
    """W11: also by a process with a cached head, which reads no entries."""
    bench.reserve("job_3", costing(0.1))
    entries = TABLES["ledger_entries"]
    with bench.database.write() as tx:
        newest = tx.execute(
            sa.select(entries).where(entries.c.account_id == victim).order_by(entries.c.sequence.desc()).limit(1)
        ).one()
        tx.execute(sa.insert(entries).values({**newest._asdict(), "sequence": newest.sequence + 7}))
    with pytest.raises(StateConflict, match="frozen"):
        bench.reserve("job_4", costing(0.1))
    assert bench.verify() == (victim,)


def test_a_snapshot_cannot_be_forged_without_the_key(bench: Bench, victim: str) -> None:
    """W11: A balance without charges in both columns, at the true head; only the signature fails."""

    def refund(row: Any) -> dict[str, Any]:
        def empty(pot: dict[str, Any]) -> dict[str, Any]:
            zeros = " ".join(["0"] * len(pot["spent"].split()))
            return {**pot, "spent": zeros, "reserved": zeros}

        def emptied(kept: dict[str, Any]) -> dict[str, Any]:
            return {**kept, "total": empty(kept["total"]), "tranches": [empty(pot) for pot in kept["tranches"]]}

        signed = emptied(row.snapshot["balance"])
        forged = {**row.snapshot, "sequence": row.sequence, "head": row.head_hash, "balance": signed}
        return {"balance": emptied(row.balance), "snapshot": forged}

    edit(bench, "ledger_accounts", victim, refund, newest=True)
    with pytest.raises(StateConflict):
        bench.reserve("job_3", costing(0.1))
    assert bench.verify() == (victim,)


def test_a_history_rewritten_with_the_key_is_detected(bench: Bench, victim: str) -> None:
    """W11: rows are rolled back, other entries are appended and signed; old checkpoints remain."""
    old = remembered(bench)
    bench.run("job_3", costing(0.4))
    with bench.database.write() as tx:
        roll_back(tx, old)
        account = locked_account.lock_account(tx, victim)
        newest = tx.scalar(sa.text("SELECT max(sequence) FROM ledger_checkpoints"))
        assert account is not None
        assert newest is not None
        *_, (_, head) = chain.replay(Head(), chain.read_after(tx, victim, 0))
        assert head.balance is not None
        account.checkpoint = newest
        snapshots.take(bench.ledger.signer, account, head.balance)
    bench.run("job_4", costing(0.1))
    assert bench.verify() == (victim,)


def test_the_loss_of_the_newest_checkpoint_is_detected(bench: Bench, victim: str) -> None:
    bench.checkpoint("ds_a")
    with bench.database.write() as tx:
        tx.execute(
            sa.text("DELETE FROM ledger_checkpoints WHERE sequence = (SELECT max(sequence) FROM ledger_checkpoints)")
        )
    assert bench.verify() == (victim,)


def test_a_lost_account_is_named(bench: Bench, victim: str) -> None:
    with bench.database.write() as tx:
        tx.execute(sa.text("DELETE FROM ledger_accounts WHERE id = :id"), {"id": victim})
    assert bench.verify() == (victim,)
    assert bench.write(bench.ledger.verify_and_freeze) == (victim,)


def test_a_dataset_cannot_be_moved_to_another_account(bench: Bench, victim: str) -> None:
    with bench.database.write() as tx:
        tx.execute(
            sa.text(
                "UPDATE ledger_datasets SET account_id = "
                "(SELECT account_id FROM ledger_datasets WHERE dataset_id = 'ds_other') WHERE dataset_id = 'ds_a'"
            )
        )
    with pytest.raises(StateConflict):
        bench.reserve("job_3", costing(0.1))
    assert victim in bench.verify()


def test_a_reservation_cannot_be_opened_by_hand(bench: Bench, victim: str) -> None:
    """W8: the row is an index; the chain is the record."""
    with bench.database.write() as tx:
        tx.execute(sa.text("UPDATE ledger_reservations SET state = 'opened' WHERE job_id = 'job_2'"))
    with pytest.raises(StateConflict):
        bench.settle("job_2", costing(0.2).events)
    assert victim in bench.verify()
