"""Queries over the audit log."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import select

from app.audit.models import AuditEntry
from app.db import ReadSession


@dataclass(frozen=True, slots=True)
class AuditFilter:
    """The filter of a query; None matches every value."""

    actor: str | None = None
    action: str | None = None
    outcome: str | None = None
    target: str | None = None
    since: datetime | None = None
    until: datetime | None = None


def list_page(session: ReadSession, criteria: AuditFilter, *, before: str | None, limit: int) -> Sequence[AuditEntry]:
    """Entries below ``before``, newest first. The time span includes ``since`` and excludes ``until``."""
    query = select(AuditEntry).order_by(AuditEntry.id.desc()).limit(limit)
    for column, value in (
        (AuditEntry.actor, criteria.actor),
        (AuditEntry.action, criteria.action),
        (AuditEntry.outcome, criteria.outcome),
        (AuditEntry.target, criteria.target),
    ):
        if value is not None:
            query = query.where(column == value)
    if criteria.since is not None:
        query = query.where(AuditEntry.at >= criteria.since)
    if criteria.until is not None:
        query = query.where(AuditEntry.at < criteria.until)
    if before is not None:
        query = query.where(AuditEntry.id < before)
    return session.scalars(query).all()
