"""Advisory locks: one transaction at a time extends a chain."""

from sqlalchemy import func, select

from app.db import WriteSession
from app.hashchain.encoding import digest


def take_lock(tx: WriteSession, name: str) -> None:
    """Hold the lock ``name`` until the transaction ends. SQLite needs none: it has one writer at a time."""
    if tx.get_bind().dialect.name == "postgresql":
        tx.execute(select(func.pg_advisory_xact_lock(int(digest({"lock": name})[:15], 16))))
