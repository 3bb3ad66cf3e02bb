"""Writes the audit log: an entry is committed in the transaction of the change that it records."""

from datetime import datetime
from enum import StrEnum

from app.audit.models import AuditEntry
from app.context import RequestContext, get_current
from app.db import WriteSession, generate_id, now


class Outcome(StrEnum):
    SUCCEEDED = "succeeded"
    REFUSED = "refused"
    FAILED = "failed"

    @classmethod
    def of(cls, status: int) -> "Outcome":
        return cls.SUCCEEDED if status < 400 else cls.REFUSED if status < 500 else cls.FAILED


def record(tx: WriteSession, target: str | None = None, *, reason: str | None = None) -> None:
    """Record in ``tx`` that the current request succeeds.

    ``target`` is the object's id; by default the target that the request's context names.

    Outside of a request this does nothing, because workers act for requests that are recorded already.
    """
    request = get_current()
    if request is None:
        return
    about = target or request.target
    add(tx, request, status=request.status, code=None, target=about, count=1, at=now(), reason=reason)
    tx.after_commit(lambda: setattr(request, "recorded", True))


def record_command(tx: WriteSession, command: str, target: str | None = None, *, reason: str | None = None) -> None:
    """Record in ``tx`` a command of the operator."""
    context = RequestContext(generate_id("req"), method="corevaultd", route=command)
    add(tx, context, status=200, code=None, target=target, count=1, at=now(), reason=reason)


def add(
    tx: WriteSession,
    request: RequestContext,
    *,
    status: int,
    code: str | None,
    target: str | None,
    count: int,
    at: datetime,
    reason: str | None = None,
    obstacle: str | None = None,
) -> None:
    """Add one entry for ``count`` calls with the same outcome; ``request`` is the first of them."""
    entry = AuditEntry(
        id=generate_id("aud"),
        at=at,
        actor=request.actor,
        action=request.action,
        target=target,
        outcome=str(Outcome.of(status)),
        status=status,
        code=code,
        count=count,
        request_id=request.request_id,
        reason=reason,
        obstacle=obstacle,
    )
    tx.add(entry)
    tx.flush()
