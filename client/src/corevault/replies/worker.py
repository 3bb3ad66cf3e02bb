"""Replies about workers."""

from dataclasses import dataclass
from datetime import datetime

from corevault.replies._decode import Reply


@dataclass(frozen=True, kw_only=True, repr=False)
class Worker(Reply):
    """A worker and its last sign of life. ``state`` is ``alive``, ``silent`` or ``unknown``.

    ``running_jobs`` is their number at the last sign of life, or None if the worker could not count them.

    >>> seen = {"id": "wrk_1", "name": "one", "state": "alive", "seen_at": "2026-11-20T12:00:00Z"}
    >>> Worker.from_json(seen).state
    'alive'
    """

    id: str
    name: str
    state: str
    seen_at: datetime
    started_at: datetime | None = None
    running_jobs: int | None = None
    processes: int | None = None
    version: str = ""
