"""Replies about datasets and their budgets."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from corevault.replies._decode import Reply
from corevault.schema import Schema


@dataclass(frozen=True, kw_only=True)
class Content(Reply):
    """The newest content, as its owner and auditors see it. ``rejection`` is a stable code."""

    version: int | None = None
    status: str | None = None
    rejection: str | None = None


@dataclass(frozen=True, kw_only=True)
class Rejection(Reply):
    """Why the newest content was rejected: a stable code, and the columns that caused it, if there are any."""

    code: str
    columns: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Dataset(Reply):
    """Declared facts and the state of a dataset. No member depends on rows."""

    id: str
    name: str
    status: str
    slots: int
    columns: tuple[Mapping[str, Any], ...]
    sensitivity: str = "private"
    description: str = ""
    population: str = ""
    privacy_unit: Mapping[str, Any] | None = None
    budget: Mapping[str, Any] | None = None
    content: Content | None = None
    rejection: Rejection | None = None
    shared_with: tuple[str, ...] | None = None
    releases_public: bool | None = None
    created_at: datetime | None = None

    @property
    def schema(self) -> Schema:
        """The declared columns, to check a table or to compute a design matrix.

        Raises ``UnexpectedReply`` for a column that this version does not support.
        """
        return Schema.from_json(self.columns)


@dataclass(frozen=True, kw_only=True)
class OpenUpload(Reply):
    """An upload in parts that is not complete. ``offset`` is the number of bytes that the server has.

    ``datasets.resume(dataset_id, upload, source)`` continues it until ``expires_at``.
    """

    id: str
    dataset_id: str = ""
    media_type: str = ""
    offset: int = 0
    length: int | None = None
    created_at: datetime | None = None
    expires_at: datetime | None = None


@dataclass(frozen=True, kw_only=True)
class Cost(Reply):
    """A privacy cost or limit, (ε, δ)."""

    epsilon: float
    delta: float


@dataclass(frozen=True, kw_only=True)
class JobCounts(Reply):
    """Numbers of jobs: settled, reserved and refused."""

    settled: int
    reserved: int
    refused: int


@dataclass(frozen=True, kw_only=True)
class Budget(Reply):
    """The balance of a dataset's account.

    ``spent + reserved`` is the composed total. ``remaining`` is the cost of the largest single full-batch job that is
    still admitted. Costs compose sublinearly, so ``spent``, ``reserved`` and ``remaining`` do not sum to ``limit``.
    ``used_share`` is the used part of the filter's main bound, in [0, 1].
    """

    dataset_id: str
    population: str
    accountant: str
    relation: str
    unit: str
    slots: int
    limit: Cost
    spent: Cost
    reserved: Cost
    remaining: Cost
    used_share: float
    jobs: JobCounts
    version: int


@dataclass(frozen=True, kw_only=True)
class LedgerEntry(Reply):
    """One entry of an account's append-only hash chain. ``epsilon_after`` is the composed total after it.

    ``cause`` is set in entries of the kind ``frozen``: ``run``, ``mismatch`` or ``unknown``.
    """

    sequence: int
    at: datetime
    kind: str
    job_id: str | None = None
    event: Any = None
    epsilon_after: float | None = None
    entry_hash: str = ""
    previous_hash: str | None = None
    cause: str | None = None
