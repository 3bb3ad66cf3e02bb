"""W11: the hash covers every column."""

from collections.abc import Callable
from dataclasses import asdict, fields, replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from sqlalchemy import select, update

from app.ledger.entries.balance import LedgerEvent
from app.ledger.integrity import chain, checkpoints
from app.ledger.integrity.chain import Draft, Head
from app.ledger.models import Checkpoint, Entry
from tests.factories.tampering import drop_triggers
from tests.ledger.support import Bench, costing

AT = datetime(2026, 1, 2, 3, 4, 5, 678_901, UTC)
BODY = {"events": [{"kind": "gaussian", "noise_multiplier": 12.5}], "epsilon": 0.25, "charge": {"amounts": "1 2"}}
ENTRY = chain.link("acc_1", Head(6, "0" * 64, None), LedgerEvent(7, "reserved", "ds_1", "job_1", BODY), AT, 0.5)
HASH = "14747a9f6e3bcce5df249c7ed0b2de5dbd0180dd40a4496b6af33f45b6480035"
"""The hash of :data:`ENTRY` in databases since the first version."""

OTHERS: dict[type, Callable[[Any], Any]] = {
    str: lambda text: f"{text}x",
    int: lambda number: number + 1,
    float: lambda number: number + 1.0,
    datetime: lambda moment: moment + timedelta(microseconds=1),
    dict: lambda body: {**body, "extra": 1},
}
"""Another value of the same kind."""


def hashed(draft: Draft) -> str:
    return chain.compute_entry_hash(Entry(**asdict(draft)))


def test_entries_keep_their_hash_of_earlier_versions() -> None:
    assert ENTRY.entry_hash == hashed(ENTRY) == HASH


@pytest.mark.parametrize("column", [field.name for field in fields(Draft) if field.name != "entry_hash"])
def test_an_entrys_hash_covers_every_column(column: str) -> None:
    """W11: no column can be rewritten under the same hash as the unchanged entry."""
    value = getattr(ENTRY, column)
    changes: dict[str, Any] = {column: OTHERS[type(value)](value)}
    assert hashed(replace(ENTRY, **changes)) != hashed(ENTRY)


def test_the_hash_covers_a_missing_job() -> None:
    assert hashed(replace(ENTRY, job_id=None)) != hashed(ENTRY)


@pytest.mark.parametrize("column", [column.name for column in Checkpoint.__table__.columns])
def test_a_checkpoint_with_an_altered_column_fails(bench: Bench, column: str) -> None:
    """W11: the chain of checkpoints detects it independently of the account."""
    bench.run("job_1", costing(0.2))
    with bench.database.write() as tx:
        drop_triggers(tx)
        value = tx.scalars(select(getattr(Checkpoint, column)).where(Checkpoint.sequence == 1)).one()
        other = 9 if column == "sequence" else OTHERS[type(value)](value)
        tx.execute(update(Checkpoint).where(Checkpoint.sequence == 1).values({column: other}))
    with bench.database.read() as session:
        found = {row.sequence: holds for row, holds in checkpoints.audit(session, bench.ledger.signer)}
    assert not found[9 if column == "sequence" else 1]
