"""Replies about quotes and jobs."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from corevault.replies._decode import Reply
from corevault.replies.dataset import Cost

ENDED = frozenset({"succeeded", "failed", "cancelled"})


@dataclass(frozen=True, kw_only=True)
class QuoteSize(Reply):
    """The requested number of pseudopoints, and the smallest that can represent the model exactly."""

    requested: int
    smallest_exact: int | None = None


@dataclass(frozen=True, kw_only=True)
class Quote(Reply):
    """A price. ``cost`` is None for public data, which has no account."""

    affordable: bool
    cost: Cost | None = None
    mechanism: Mapping[str, Any] | None = None
    epsilon_after: float | None = None
    more_like_this: int | None = None
    size: QuoteSize | None = None
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Progress(Reply):
    """Progress of a job. ``fraction`` counts planned steps, in [0, 1], and does not depend on rows."""

    fraction: float
    stage: str = ""


@dataclass(frozen=True, kw_only=True)
class JobError(Reply):
    """The cause of a failed job: ``run_failed``, ``interrupted`` or ``dataset_deleted``."""

    code: str


@dataclass(frozen=True, kw_only=True)
class Job(Reply):
    """A job. ``release_id`` is None until the job has succeeded."""

    id: str
    dataset_id: str
    status: str
    progress: Progress | None = None
    cost: Cost | None = None
    release_id: str | None = None
    error: JobError | None = None
    created_at: datetime | None = None

    @property
    def ended(self) -> bool:
        """Whether the state is final."""
        return self.status in ENDED


@dataclass(frozen=True, kw_only=True)
class JobEvent:
    """An event of a job, ``progress`` or ``end``. Pass ``id`` as ``last_event_id`` to resume after it."""

    name: str
    data: Mapping[str, Any]
    id: str
