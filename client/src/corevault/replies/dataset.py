"""Replies about datasets and their budgets."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, ClassVar

from corevault.replies._decode import Reply
from corevault.replies.key import KeyName
from corevault.schema import Schema


@dataclass(frozen=True, kw_only=True, repr=False)
class Cost(Reply):
    """A privacy cost or limit, (ε, δ).

    >>> str(Cost(epsilon=0.5, delta=1e-6))
    'ε=0.5, δ=1e-06'
    """

    epsilon: float
    delta: float

    def __str__(self) -> str:
        return f"ε={self.epsilon:.4g}, δ={self.delta:.3g}"


@dataclass(frozen=True, kw_only=True, repr=False)
class Content(Reply):
    """The newest content, as its owner and auditors see it. ``rejection`` is a stable code."""

    version: int | None = None
    status: str | None = None
    rejection: str | None = None


@dataclass(frozen=True, kw_only=True, repr=False)
class Rejection(Reply):
    """Why the newest content was rejected: a stable code, and the columns that caused it, if there are any."""

    code: str
    columns: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True, repr=False)
class Dataset(Reply):
    """Declared facts and the state of a dataset. No member depends on rows.

    >>> client.datasets.get("clinic").slots
    2000
    """

    SHOWN: ClassVar[tuple[str, ...]] = ("id", "name", "status", "slots", "rejection")

    id: str
    name: str
    status: str
    slots: int
    columns: tuple[Mapping[str, Any], ...]
    sensitivity: str = "private"
    description: str = ""
    population: str = ""
    series: str | None = None
    privacy_unit: Mapping[str, Any] | None = None
    owner: KeyName | None = None
    budget: Mapping[str, Any] | None = None
    spent: Cost | None = None
    reserved: Cost | None = None
    remaining: Cost | None = None
    content: Content | None = None
    rejection: Rejection | None = None
    shared_with: tuple[str, ...] | None = None
    releases_public: bool | None = None
    created_at: datetime | None = None

    @property
    def schema(self) -> Schema:
        """The declared columns, to check a table or to compute a design matrix.

        Raises ``UnexpectedReply`` for a column that this version does not support.

        >>> client.datasets.get("clinic").schema.names
        ['age', 'sex', 'sick']
        """
        return Schema.from_json(self.columns)

    @property
    def most_rows(self) -> int | None:
        """The most rows that a table may have: ``slots``. None if a person may have several rows.

        >>> client.datasets.get("clinic").most_rows
        2000
        """
        return self.slots if (self.privacy_unit or {}).get("column") is None else None


@dataclass(frozen=True, kw_only=True, repr=False)
class OpenUpload(Reply):
    """An upload in parts that is not complete. ``offset`` is the number of bytes that the server has.

    ``datasets.resume(dataset_id, upload, source)`` continues it until ``expires_at``.

    >>> {upload.offset for upload in client.datasets.open_uploads("halted")} <= {0}
    True
    """

    SHOWN: ClassVar[tuple[str, ...]] = ("id", "dataset_id", "offset", "length", "expires_at")

    id: str
    dataset_id: str = ""
    media_type: str = ""
    offset: int = 0
    length: int | None = None
    created_at: datetime | None = None
    expires_at: datetime | None = None


@dataclass(frozen=True, kw_only=True, repr=False)
class JobCounts(Reply):
    """Numbers of jobs: settled, reserved and refused.

    >>> client.datasets.budget("clinic").jobs.settled >= 1
    True
    """

    settled: int
    reserved: int
    refused: int


@dataclass(frozen=True, kw_only=True, repr=False)
class Allocation(Reply):
    """The part of a dataset's limit that one API key may spend.

    >>> str(Allocation(key_id="key_1", limit=Cost(epsilon=0.5, delta=1e-6), spent=Cost(epsilon=0, delta=1e-6)))
    'ε=0.5, δ=1e-06'
    """

    key_id: str
    limit: Cost
    spent: Cost | None = None
    reserved: Cost | None = None

    def __str__(self) -> str:
        return str(self.limit)


@dataclass(frozen=True, kw_only=True, repr=False)
class Budget(Reply):
    """The balance of a dataset's account.

    ``spent + reserved`` is the composed total. ``remaining`` is the cost of the largest single full-batch job that is
    still admitted. Costs compose sublinearly, so ``spent``, ``reserved`` and ``remaining`` do not sum to ``limit``.
    ``used_share`` is the used part of the filter's main bound, in [0, 1]. ``allocations`` is None if the key may see
    none.

    >>> budget = client.datasets.budget("clinic")
    >>> budget.spent.epsilon < budget.limit.epsilon
    True
    """

    SHOWN: ClassVar[tuple[str, ...]] = ("dataset_id", "limit", "spent", "reserved", "remaining", "used_share")

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
    allocations: tuple[Allocation, ...] | None = None

    def plot(self, *, ax: Any = None) -> Any:
        """A bar of the spent and reserved ε, and the limit; returns the axes (needs the ``plot`` extra).

        >>> axes = client.datasets.budget("clinic").plot()
        """
        from corevault.plots import plot_budget  # noqa: PLC0415 - SciPy is imported when it is needed

        return plot_budget(self, ax=ax)


@dataclass(frozen=True, kw_only=True, repr=False)
class RefusedJobs(Reply):
    """Jobs of one key that the budget did not cover. ``count`` is their number, within about a minute from ``at`` on.

    They cost nothing and are not in the ledger's chain. ``reason`` is ``limit``, ``cap`` or ``allocation``, as in a
    quote. It is None for refusals that an earlier version of the server recorded.

    >>> list(client.datasets.refusals("clinic"))
    []
    """

    SHOWN: ClassVar[tuple[str, ...]] = ("at", "dataset_name", "submitted_by", "count", "reason")

    at: datetime
    dataset_id: str
    dataset_name: str | None = None
    submitted_by: KeyName | None = None
    count: int = 1
    reason: str | None = None


@dataclass(frozen=True, kw_only=True, repr=False)
class LedgerEntry(Reply):
    """One entry of an account's append-only hash chain. ``epsilon_after`` is the composed total after it.

    ``cause`` is set in entries of the kind ``frozen``: ``run``, ``mismatch`` or ``unknown``.

    >>> [entry.sequence for entry in client.datasets.ledger("clinic")][-1]
    1
    """

    SHOWN: ClassVar[tuple[str, ...]] = ("sequence", "at", "kind", "job_id", "submitted_by", "purpose", "epsilon_after")

    sequence: int
    at: datetime
    kind: str
    dataset_id: str = ""
    dataset_name: str | None = None
    job_id: str | None = None
    submitted_by: KeyName | None = None
    purpose: str | None = None
    event: Any = None
    epsilon_after: float | None = None
    entry_hash: str = ""
    previous_hash: str | None = None
    cause: str | None = None
