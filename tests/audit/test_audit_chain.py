"""W11: an offline check of the audit log finds every change made without the triggers."""

from collections.abc import Callable

import pytest
from sqlalchemy import text

from app.audit import chain
from app.audit.journal import record_command
from app.db import Database
from app.services import Services
from app.vault.signing import Signer

TRIGGERS = {
    "sqlite": "SELECT 'DROP TRIGGER ' || name FROM sqlite_master WHERE type = 'trigger' AND tbl_name LIKE 'audit_%'",
    "postgresql": "SELECT DISTINCT 'DROP TRIGGER ' || trigger_name || ' ON ' || event_object_table "
    "FROM information_schema.triggers WHERE event_object_table LIKE 'audit_%'",
}


@pytest.fixture
def log(services: Services) -> Callable[[], list[str]]:
    """Two batches of two entries, without triggers; returns a function that lists the faults."""
    database, signer = services.database, services.signer
    for command in ("a", "b"):
        with database.write() as tx:
            record_command(tx, command)
            record_command(tx, command * 2)
        with database.write() as tx:
            assert chain.extend(tx, signer) == 2
    with database.write() as tx:
        for drop in tx.execute(text(TRIGGERS[database.engine.dialect.name])).scalars().all():
            tx.execute(text(drop))

    def findings() -> list[str]:
        with database.read() as session:
            return list(chain.find_faults(session, signer.ring))

    assert findings() == []
    return findings


@pytest.mark.parametrize(
    ("statement", "found"),
    [
        ("UPDATE audit_entries SET actor = 'key_x' WHERE sequence = 2", "audit entry 2: altered"),
        ("UPDATE audit_entries SET count = 9 WHERE sequence = 4", "audit entry 4: altered"),
        ("UPDATE audit_entries SET obstacle = 'cap' WHERE sequence = 3", "audit entry 3: altered"),
        ("DELETE FROM audit_entries WHERE sequence = 2", "audit entry 2: missing"),
        ("DELETE FROM audit_entries WHERE sequence = 4", "audit head 4: its entry is missing"),
        ("DELETE FROM audit_heads WHERE sequence = 4", "audit entry 4: no head is signed behind it"),
        ("UPDATE audit_heads SET signature = 'AAAA' WHERE sequence = 2", "audit head 2: the signature does not hold"),
        ("UPDATE audit_heads SET key_id = 'other' WHERE sequence = 2", "audit head 2: the signature does not hold"),
    ],
)
def test_tampering_is_found(log: Callable[[], list[str]], database: Database, statement: str, found: str) -> None:
    with database.write() as tx:
        tx.execute(text(statement))
    assert found in log()


def test_a_rewritten_chain_needs_the_key(log: Callable[[], list[str]], database: Database) -> None:
    with database.write() as tx:
        tx.execute(text("DELETE FROM audit_heads"))
        tx.execute(text("UPDATE audit_entries SET sequence = NULL, actor = 'key_x'"))
    with database.write() as tx:
        chain.extend(tx, Signer(b"7" * 32))
    assert log() == ["audit head 4: the signature does not hold"]


def test_concurrent_writers_never_take_the_same_place(services: Services) -> None:
    database, signer = services.database, services.signer
    with database.write() as tx:
        for _ in range(5):
            record_command(tx, "a")
    with database.write() as tx:
        assert chain.extend(tx, signer) == 5
        assert chain.extend(tx, signer) == 0
    with database.read() as session:
        assert not chain.has_waiting(session)
