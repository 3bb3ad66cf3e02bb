"""The audit log's tables (triggers keep them append-only).

What an entry says never changes. Its place in the chain is written once, soon after it was committed: see
:mod:`app.audit.chain`.
"""

from datetime import datetime

from sqlalchemy import Index, text
from sqlalchemy.orm import Mapped, mapped_column

from app.db import Base


class AuditEntry(Base):
    __tablename__ = "audit_entries"
    __table_args__ = (
        Index(
            "ix_audit_entries_unchained",
            "id",
            sqlite_where=text("sequence IS NULL"),
            postgresql_where=text("sequence IS NULL"),
        ),
        Index("ix_audit_entries_sequence", "sequence", unique=True),
    )

    id: Mapped[str] = mapped_column(primary_key=True)
    at: Mapped[datetime]
    actor: Mapped[str | None] = mapped_column(index=True)  # the id of the key; None: nobody that we know
    action: Mapped[str]  # method and template, or the operator's command
    target: Mapped[str | None]  # the id of what it was about, where the actor may see it
    outcome: Mapped[str]  # succeeded, refused or failed
    status: Mapped[int]
    code: Mapped[str | None]  # of the problem that it was answered with
    count: Mapped[int]  # how many calls it stands for
    request_id: Mapped[str | None]  # of the first of them
    reason: Mapped[str | None]  # what the actor gave for it, where the call asks for one
    sequence: Mapped[int | None]
    previous_hash: Mapped[str | None]
    entry_hash: Mapped[str | None]


class AuditHead(Base):
    """A signed end of the chain: nothing before it can change or vanish unnoticed."""

    __tablename__ = "audit_heads"

    sequence: Mapped[int] = mapped_column(primary_key=True)  # of the last entry below it
    at: Mapped[datetime]
    entry_hash: Mapped[str]
    signature: Mapped[str]
    key_id: Mapped[str]
