"""Replies about quotes and jobs."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, ClassVar

from corevault.replies._decode import Reply
from corevault.replies.dataset import Cost
from corevault.replies.key import KeyName

ENDED = frozenset({"succeeded", "failed", "cancelled"})


@dataclass(frozen=True, kw_only=True, repr=False)
class QuoteSize(Reply):
    """The number of pseudopoints, and the smallest that can represent the model exactly.

    >>> client.quote("clinic", model, size=50, epsilon=0.5).size.requested
    50
    """

    requested: int
    smallest_exact: int | None = None


@dataclass(frozen=True, kw_only=True, repr=False)
class ExpectedAccuracy(Reply):
    """How much noise would widen the intervals of a release: an estimate, by name of the parameter.

    ``interval_widening`` is the factor by which a 95 % interval is wider than without noise. 1.0 is no difference; at
    2.0, half of the width is due to noise. ``noise_in_posterior_sds`` is the standard deviation of the noise in the
    posterior's mean, over that of the posterior.

    The server computes both on rows that it simulates from the declaration, and reads no real row. So they are right in
    the order of magnitude only. ``interval_widening_range`` is the lowest and the highest factor to expect. About nine
    of ten parameters of calibrated test releases were in this range. Rare outcomes, columns that are narrow within
    their bounds, outliers and empty slots widen intervals. A release states its real noise.

    >>> found = client.quote("clinic", model, epsilon=0.5, expected_accuracy=True).expected_accuracy
    >>> sorted(found.interval_widening)
    ['age', 'intercept', 'sex=male']
    >>> found.widest >= 1.0
    True
    """

    interval_widening: Mapping[str, float]
    noise_in_posterior_sds: Mapping[str, float]
    assumes: str = ""
    interval_widening_range: Mapping[str, Sequence[float]] = field(default_factory=dict)
    """Empty from servers of an earlier version."""

    @property
    def widest(self) -> float:
        """The largest widening of an interval; 1.0 without parameters.

        >>> ExpectedAccuracy(interval_widening={"age": 1.2, "sex": 1.5}, noise_in_posterior_sds={}).widest
        1.5
        """
        return max(self.interval_widening.values(), default=1.0)

    @property
    def range_of_widest(self) -> tuple[float, float] | None:
        """The lowest and the highest factor of the parameter whose interval widens most; None if not stated.

        >>> ranges = {"age": (1.0, 2.1), "sex": (1.1, 5.3)}
        >>> noise = {"age": 0.2, "sex": 1.1}
        >>> found = ExpectedAccuracy(
        ...     interval_widening=noise, noise_in_posterior_sds=noise, interval_widening_range=ranges
        ... )
        >>> found.range_of_widest
        (1.1, 5.3)
        """
        name = max(self.interval_widening, key=self.interval_widening.__getitem__, default="")
        found = tuple(self.interval_widening_range.get(name, ()))
        return (found[0], found[1]) if len(found) == 2 else None

    def __str__(self) -> str:
        stated = self.range_of_widest
        between = "" if stated is None else f" ({stated[0]:.2g} to {stated[1]:.2g} in nine of ten cases)"
        return f"intervals at most about {self.widest:.2g} times as wide as without noise{between}"


@dataclass(frozen=True, kw_only=True, repr=False)
class Quote(Reply):
    """A price. ``cost`` is None for public data, which has no account.

    ``reason`` is why the job is not affordable: ``limit``, ``cap``, ``allocation`` or ``frozen``.

    >>> client.quote("clinic", model, epsilon=15.0).reason
    'limit'
    """

    SHOWN: ClassVar[tuple[str, ...]] = (
        *("affordable", "reason", "cost", "epsilon_after", "more_like_this", "expected_accuracy", "warnings"),
    )

    affordable: bool
    reason: str | None = None
    cost: Cost | None = None
    mechanism: Mapping[str, Any] | None = None
    epsilon_after: float | None = None
    more_like_this: int | None = None
    size: QuoteSize | None = None
    warnings: tuple[str, ...] = ()
    expected_accuracy: ExpectedAccuracy | None = None


def make_quote_row(epsilon: float | None, quote: Quote, expected_accuracy: bool) -> dict[str, Any]:
    """Makes the row of a table of quotes."""
    cost = quote.cost
    row: dict[str, Any] = {"epsilon": epsilon, "delta": None if cost is None else cost.delta}
    row |= {name: getattr(quote, name) for name in ("affordable", "reason", "epsilon_after", "more_like_this")}
    if expected_accuracy:
        found = quote.expected_accuracy
        low, high = (None, None) if found is None else found.range_of_widest or (None, None)
        row |= {"widening": None if found is None else found.widest, "widening_from": low, "widening_to": high}
    return row | {"warnings": " ".join(quote.warnings)}


@dataclass(frozen=True, kw_only=True, repr=False)
class Quotes(Reply):
    """Prices for several targets, in their order."""

    quotes: tuple[Quote, ...]


@dataclass(frozen=True, kw_only=True, repr=False)
class Progress(Reply):
    """Progress of a job. ``fraction`` counts planned steps, in [0, 1], and does not depend on rows.

    >>> str(Progress(fraction=0.5, stage="running"))
    '50% running'
    """

    fraction: float
    stage: str = ""

    def __str__(self) -> str:
        return f"{self.fraction:.0%} {self.stage}".rstrip()


@dataclass(frozen=True, kw_only=True, repr=False)
class JobError(Reply):
    """The cause of a failed job: ``run_failed``, ``interrupted`` or ``dataset_deleted``.

    >>> JobError(code="run_failed")
    JobError(code='run_failed')
    """

    code: str


@dataclass(frozen=True, kw_only=True, repr=False)
class Settlement(Reply):
    """The charge of an ended job: the full cost if it opened the data, otherwise nothing.

    >>> client.jobs.get(job).settlement.reason
    'The release was published, so the full price was charged.'
    """

    charged: Cost
    reason: str = ""

    def __str__(self) -> str:
        return str(self.charged) if self.charged.epsilon else "nothing"


@dataclass(frozen=True, kw_only=True, repr=False)
class Job(Reply):
    """A job. ``release_id`` is None until the job has succeeded, and ``settlement`` until it has ended.

    ``dataset_name`` is None for a key that may not see the dataset.

    >>> round(client.jobs.get(job).cost.epsilon, 2)
    1.0
    """

    SHOWN: ClassVar[tuple[str, ...]] = ("id", "dataset_id", "status", "purpose", "progress", "cost", "release_id")

    id: str
    dataset_id: str
    status: str
    dataset_name: str | None = None
    submitted_by: KeyName | None = None
    purpose: str | None = None
    progress: Progress | None = None
    cost: Cost | None = None
    release_id: str | None = None
    error: JobError | None = None
    settlement: Settlement | None = None
    created_at: datetime | None = None

    @property
    def ended(self) -> bool:
        """Whether the state is final.

        >>> client.jobs.get(job).ended
        True
        """
        return self.status in ENDED


@dataclass(frozen=True, kw_only=True, repr=False)
class JobEvent:
    """An event of a job, ``progress`` or ``end``. Pass ``id`` as ``last_event_id`` to resume after it.

    >>> JobEvent(name="progress", data={"fraction": 0.5}, id="3").data["fraction"]
    0.5
    """

    name: str
    data: Mapping[str, Any]
    id: str
