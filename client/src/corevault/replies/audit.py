"""Replies about the audit log."""

from dataclasses import dataclass
from datetime import datetime
from typing import ClassVar

from corevault.replies._decode import Reply


@dataclass(frozen=True, kw_only=True, repr=False)
class AuditEntry(Reply):
    """One call, or ``count`` equal refusals of one key within a minute.

    >>> seen = {"id": "aud_1", "at": "2026-11-20T12:00:00Z", "action": "POST /v1/jobs", "outcome": "refused"}
    >>> AuditEntry.from_json(seen).outcome
    'refused'
    """

    SHOWN: ClassVar[tuple[str, ...]] = ("id", "at", "actor", "action", "target", "outcome", "code", "count")

    id: str
    at: datetime
    action: str
    outcome: str
    actor: str | None = None
    target: str | None = None
    status: int | None = None
    code: str | None = None
    count: int = 1
    request_id: str | None = None
    reason: str | None = None
    obstacle: str | None = None
