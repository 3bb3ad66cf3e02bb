"""Changes by an attacker who can write to the database but has no key."""

from collections.abc import Callable
from typing import Any

from sqlalchemy import Table, and_, select, text, update

from app.db import Base, WriteSession
from app.ledger.integrity.chain import compute_entry_hash

_TRIGGERS = {
    "sqlite": "SELECT 'DROP TRIGGER ' || name FROM sqlite_master WHERE type = 'trigger'",
    "postgresql": "SELECT DISTINCT 'DROP TRIGGER ' || trigger_name || ' ON ' || event_object_table "
    "FROM information_schema.triggers",
}


def table(name: str) -> Table:
    return Base.metadata.tables[name]


def drop_triggers(tx: WriteSession) -> None:
    """Drop all triggers, so that the database refuses no change."""
    for drop in tx.scalars(text(_TRIGGERS[tx.get_bind().dialect.name])).all():
        tx.execute(text(drop))


def rewrite_newest_entry(tx: WriteSession, account_id: str, change: Callable[[dict[str, Any]], dict[str, Any]]) -> None:
    """Change the newest entry's body, its hash and the account's head."""
    drop_triggers(tx)
    entries, accounts = table("ledger_entries"), table("ledger_accounts")
    of_account = entries.c.account_id == account_id
    row = tx.execute(select(entries).where(of_account).order_by(entries.c.sequence.desc()).limit(1)).one()
    place = and_(of_account, entries.c.sequence == row.sequence)
    tx.execute(update(entries).where(place).values(body=change(row.body)))
    hashed = compute_entry_hash(tx.execute(select(entries).where(place)).one())
    tx.execute(update(entries).where(place).values(entry_hash=hashed))
    tx.execute(update(accounts).where(accounts.c.id == account_id).values(head_hash=hashed))
