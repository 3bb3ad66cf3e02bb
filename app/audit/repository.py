"""Queries over the audit log."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, TypeVar

from sqlalchemy import Select, literal, select

from app.audit.models import AuditEntry
from app.db import ReadSession
from app.errors import BudgetExceeded

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


@dataclass(frozen=True, slots=True)
class RefusedJobs:
    """Jobs of one key that the budget of a dataset did not cover: ``count`` within a minute, from ``at`` on.

    ``obstacle``: which budget it was, as in quotes; None for entries of earlier versions.
    """

    id: str
    at: datetime
    key_id: str | None
    dataset_id: str
    count: int
    obstacle: str | None


def list_refused_jobs(
    session: ReadSession,
    dataset_ids: Collection[str],
    *,
    limit: int,
    before: str | None = None,
    since: datetime | None = None,
    until: datetime | None = None,
) -> list[RefusedJobs]:
    """List the jobs on these datasets that a budget refused, newest first; ``before`` and times as above."""
    query = select(
        AuditEntry.id, AuditEntry.at, AuditEntry.actor, AuditEntry.target, AuditEntry.count, AuditEntry.obstacle
    )
    query = AuditFilter(since=since, until=until).restrict(query)
    code = literal(BudgetExceeded.code, literal_execute=True)  # no parameter, so that the index serves the query
    query = query.where(AuditEntry.target.in_(dataset_ids), AuditEntry.code == code)
    if before is not None:
        query = query.where(AuditEntry.id < before)
    rows = session.execute(query.order_by(AuditEntry.id.desc()).limit(limit))
    return [
        RefusedJobs(key, at, actor, str(target), count, obstacle) for key, at, actor, target, count, obstacle in rows
    ]
