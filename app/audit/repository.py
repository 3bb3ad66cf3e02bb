"""Queries over the audit log."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import select

from app.audit.models import AuditEntry
from app.db import ReadSession


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which entries a reader asks for; None leaves a member open."""

    actor: str | None = None
    action: str | None = None
    outcome: str | None = None
    target: str | None = None
    since: datetime | None = None
    until: datetime | None = None


def page(session: ReadSession, wanted: Wanted, *, before: str | None, limit: int) -> Sequence[AuditEntry]:
    """Newest first, below ``before``; ``since`` belongs to the span, ``until`` does not."""
    query = select(AuditEntry).order_by(AuditEntry.id.desc()).limit(limit)
    for column, value in (
        (AuditEntry.actor, wanted.actor),
        (AuditEntry.action, wanted.action),
        (AuditEntry.outcome, wanted.outcome),
        (AuditEntry.target, wanted.target),
    ):
        if value is not None:
            query = query.where(column == value)
    if wanted.since is not None:
        query = query.where(AuditEntry.at >= wanted.since)
    if wanted.until is not None:
        query = query.where(AuditEntry.at < wanted.until)
    if before is not None:
        query = query.where(AuditEntry.id < before)
    return session.scalars(query).all()
