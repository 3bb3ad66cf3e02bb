"""The audit log's tables; triggers keep them append-only.

The content of an entry never changes. Its place in the chain is written once, soon after the commit: see
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
        Index(
            "ix_audit_entries_over_budget",
            "target",
            "id",
            sqlite_where=text("code = 'budget_exceeded'"),
            postgresql_where=text("code = 'budget_exceeded'"),
        ),
    )

    id: Mapped[str] = mapped_column(primary_key=True)
    at: Mapped[datetime]
    actor: Mapped[str | None] = mapped_column(index=True)  # the id of the key; None: not authenticated
    action: Mapped[str]  # method and template, or the operator's command
    target: Mapped[str | None]  # the id of the object, if the actor may see it
    outcome: Mapped[str]  # succeeded, refused or failed
    status: Mapped[int]
    code: Mapped[str | None]  # of the problem details in the response
    count: Mapped[int]  # number of calls in this entry
    request_id: Mapped[str | None]  # of the first of them
    reason: Mapped[str | None]  # the actor's reason, if the call requires one
    obstacle: Mapped[str | None]  # which budget refused the jobs: limit, cap or allocation
    sequence: Mapped[int | None]
    previous_hash: Mapped[str | None]
    entry_hash: Mapped[str | None]


class AuditHead(Base):
    """A signed end of the chain. A later change or removal of an earlier entry is detected."""

    __tablename__ = "audit_heads"

    sequence: Mapped[int] = mapped_column(primary_key=True)  # of the last entry below it
    at: Mapped[datetime]
    entry_hash: Mapped[str]
    signature: Mapped[str]
    key_id: Mapped[str]
