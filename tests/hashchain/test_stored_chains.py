"""W11: chains that were stored before the common kernel verify, and are extended by the same hashes.

``stored_chains.json`` holds rows of an account's chain, of the checkpoints and of the audit log. Separate code for each
chain wrote them.
"""

import json
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from app.audit import chain as audit_chain
from app.db import Base, Database
from app.ledger import Ledger
from app.vault.signing import Signer
from tests.factories.tampering import drop_triggers

SEED = bytes(range(32))
STORED: dict[str, Any] = json.loads(Path(__file__).with_name("stored_chains.json").read_text())
NEWEST_HASHES = {
    ("ledger_entries", "entry_hash"): "7c8ba532cd25008b8602f1a0b06986147fba5b0cc88c1f3e3d0c7ebe10f2cb9f",
    ("ledger_checkpoints", "checkpoint_hash"): "88f768e603384b90ed94e9fbca3f41f48990c6c2274a45939bc79e4f04d8241f",
    ("audit_entries", "entry_hash"): "a8ab004282925a9ce1e7d6c738beb1a84070a51c639eff697e539f45d1c37b93",
}
UNCHAINED = {"sequence": None, "previous_hash": None, "entry_hash": None}


@pytest.fixture
def stored(database: Database) -> Database:
    """A database that holds only the stored rows."""
    with database.write() as tx:
        for name, rows in STORED.items():
            tx.execute(sa.insert(Base.metadata.tables[name]), [_read_row(row) for row in rows])
    return database


def _read_row(row: dict[str, Any]) -> dict[str, Any]:
    return {name: datetime.fromisoformat(value) if name == "at" else value for name, value in row.items()}


def verify(database: Database) -> list[str]:
    signer = Signer(SEED)
    with database.read() as session:
        suspects = Ledger(signer, max_epsilon=20.0).verify(session)
        return [*suspects, *audit_chain.find_faults(session, signer.ring)]


def test_stored_chains_verify(stored: Database) -> None:
    assert verify(stored) == []


@pytest.mark.parametrize(("name", "column"), NEWEST_HASHES)
def test_stored_chains_end_with_the_recorded_hash(name: str, column: str) -> None:
    assert STORED[name][-1][column] == NEWEST_HASHES[name, column]


@pytest.mark.parametrize(("name", "column"), NEWEST_HASHES)
def test_a_stored_chain_with_another_hash_fails(stored: Database, name: str, column: str) -> None:
    row = sa.column(column) == NEWEST_HASHES[name, column]
    with stored.write() as tx:
        drop_triggers(tx)
        tx.execute(sa.update(Base.metadata.tables[name]).where(row).values({column: "e" * 64}))
    assert verify(stored) != []


def test_audit_entries_are_chained_by_the_recorded_hashes(database: Database) -> None:
    table, rows = Base.metadata.tables["audit_entries"], STORED["audit_entries"]
    with database.write() as tx:
        tx.execute(sa.insert(table), [_read_row(row) | UNCHAINED for row in rows])
    with database.write() as tx:
        assert audit_chain.extend(tx, Signer(SEED)) == len(rows)
    with database.read() as session:
        hashes = session.scalars(sa.select(table.c.entry_hash).order_by(table.c.sequence)).all()
    assert list(hashes) == [row["entry_hash"] for row in rows]
