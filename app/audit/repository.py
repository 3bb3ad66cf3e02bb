"""Queries over the audit log."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, TypeVar

from sqlalchemy import Select, select

from app.audit.models import AuditEntry
from app.db import ReadSession

Query = TypeVar("Query", bound=Select[*tuple[Any, ...]])


@dataclass(frozen=True, slots=True)
class AuditFilter:
    """The filter of a query; None matches every value."""

    actor: str | None = None
    action: str | None = None
    outcome: str | None = None
    target: str | None = None
    since: datetime | None = None
    until: datetime | None = None

    def restrict(self, query: Query) -> Query:
        """Add the conditions to a query. The time span includes ``since`` and excludes ``until``."""
        for column, value in (
            (AuditEntry.actor, self.actor),
            (AuditEntry.action, self.action),
            (AuditEntry.outcome, self.outcome),
            (AuditEntry.target, self.target),
        ):
            if value is not None:
                query = query.where(column == value)
        if self.since is not None:
            query = query.where(AuditEntry.at >= self.since)
        return query if self.until is None else query.where(AuditEntry.at < self.until)


def list_page(session: ReadSession, criteria: AuditFilter, *, before: str | None, limit: int) -> Sequence[AuditEntry]:
    """List the entries that match, newest first; with ``before``, only those with a lower id."""
    query = criteria.restrict(select(AuditEntry)).order_by(AuditEntry.id.desc()).limit(limit)
    if before is not None:
        query = query.where(AuditEntry.id < before)
    return session.scalars(query).all()


def count_calls(
    session: ReadSession, criteria: AuditFilter, code: str, *, limit: int
) -> Sequence[tuple[datetime, int]]:
    """List the times and numbers of calls of matching entries with ``code``.

    The result has the newest ``limit`` entries, oldest first.
    """
    query = criteria.restrict(select(AuditEntry.at, AuditEntry.count)).where(AuditEntry.code == code)
    rows = session.execute(query.order_by(AuditEntry.id.desc()).limit(limit)).all()
    return [(at, count) for at, count in reversed(rows)]
