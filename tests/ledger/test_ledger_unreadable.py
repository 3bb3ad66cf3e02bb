"""W11: an account with unreadable JSON is named, and the others are verified."""

import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
import sqlalchemy as sa

from app.db import Database, make_engine
from app.errors import StateConflict
from app.ledger import Ledger
from app.ledger.views import LedgerEntry
from app.vault.signing import Signer
from tests.ledger.support import SEED, Bench, costing

pytestmark = pytest.mark.sqlite

PLACES = ("entries.body", "accounts.limits", "accounts.balance", "accounts.snapshot")
TEXTS = {"cut": '{"a":', "nested": "[" * 100_000, "null": "null", "list": "[]", "text": '"{}"', "empty": ""}


@pytest.fixture
def bench(migrated_file: Path, tmp_path: Path) -> Iterator[Bench]:
    """Two accounts, each with a settled job, and no triggers."""
    path = shutil.copy(migrated_file, tmp_path)
    bench = Bench(Database(make_engine(f"sqlite:///{path}")), Ledger(Signer(SEED), max_epsilon=20.0))
    for dataset_id in ("ds_a", "ds_b"):
        bench.open_account(dataset_id, population=dataset_id)
        bench.run(f"job_{dataset_id}", costing(0.2), dataset_id)
    with bench.database.write() as tx:
        for name in tx.scalars(sa.text("SELECT name FROM sqlite_master WHERE type = 'trigger'")).all():
            tx.execute(sa.text(f"DROP TRIGGER {name}"))
    yield bench
    bench.database.dispose()


def store(bench: Bench, place: str, text: str, *, newest: bool) -> str:
    """Store ``text`` in a row of the account of ``ds_a``; return the account's id."""
    table, column = place.split(".")
    order = "DESC" if newest else "ASC"
    named = "id" if table == "accounts" else "account_id"
    with bench.database.write() as tx:
        account_id = tx.scalar(sa.text("SELECT account_id FROM ledger_datasets WHERE dataset_id = 'ds_a'"))
        chosen = f"SELECT rowid FROM ledger_{table} WHERE {named} = :id ORDER BY sequence {order} LIMIT 1"
        statement = sa.text(f"UPDATE ledger_{table} SET {column} = :text WHERE rowid = ({chosen})")
        tx.execute(statement, {"text": text, "id": account_id})
    return str(account_id)


@pytest.mark.parametrize("newest", [False, True], ids=["oldest", "newest"])
@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
def test_an_account_with_unreadable_json_is_named_alone(bench: Bench, place: str, text: str, newest: bool) -> None:
    victim = store(bench, place, text, newest=newest)
    assert bench.verify() == (victim,)
    assert bench.write(bench.ledger.verify_and_freeze) == (victim,)
    with pytest.raises(StateConflict, match="frozen"):
        bench.reserve("job_3", costing(0.1))
    bench.reserve("job_4", costing(0.1), "ds_b")


def test_entries_are_listed_around_an_unreadable_one(bench: Bench) -> None:
    before = entries(bench)
    store(bench, "entries.body", "{", newest=True)
    newest, *others = entries(bench)
    assert newest == replace(before[0], event=None)
    assert others == before[1:]


def entries(bench: Bench) -> list[LedgerEntry]:
    with bench.database.read() as session:
        return bench.ledger.entries(session, "ds_a", limit=50, before=None)


@pytest.mark.parametrize("place", PLACES[1:])
def test_unreadable_json_freezes_the_account_at_its_next_use(bench: Bench, place: str) -> None:
    """A process without a cached head answers without an internal error."""
    store(bench, place, "{", newest=True)
    other = Bench(bench.database, Ledger(bench.ledger.signer, max_epsilon=20.0))
    with pytest.raises(StateConflict, match="frozen"):
        other.reserve("job_3", costing(0.1))
    with bench.database.read() as session:
        frozen = session.scalars(sa.text("SELECT id FROM ledger_accounts WHERE frozen_at IS NOT NULL")).all()
    assert len(frozen) == 1
