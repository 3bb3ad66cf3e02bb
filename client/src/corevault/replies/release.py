"""Replies about releases."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, ClassVar

from corevault.design import DesignColumn
from corevault.replies._decode import Reply
from corevault.replies.dataset import Cost


@dataclass(frozen=True, kw_only=True, repr=False)
class Prior(Reply):
    """The prior ``N(mean, scale²)`` of the coefficient of each design column.

    ``scales`` maps names of columns to other scales, and ``mean`` to means other than 0. If ``degrees_of_freedom`` is
    set, all scales are multiplied by the same unknown factor, and the prior is a multivariate t distribution.
    """

    scale: float = 1.0
    scales: Mapping[str, float] | None = None
    degrees_of_freedom: float | None = None
    mean: Mapping[str, float] | None = None


@dataclass(frozen=True, kw_only=True, repr=False)
class ReleasedModel(Reply):
    """The model for which the pseudocoreset was made.

    ``features`` are names of columns, and the JSON of terms. In the points, a numeric target is in the table's units,
    and a categorical target is the index of its category.
    ``target_transform`` describes how to convert the table's target to the model's, if they differ.
    """

    family: str
    features: tuple[Any, ...] = ()
    target: str | None = None
    prior: Prior | None = None
    noise_scale: float | None = None
    degrees_of_freedom: float | None = None
    dispersion: float | None = None
    topics: int | None = None
    document_concentration: float | None = None
    topic_concentration: float | None = None
    hidden_units: int | None = None
    noise_covariance: Mapping[str, Mapping[str, float]] | None = None
    target_transform: Mapping[str, Any] | None = None


@dataclass(frozen=True, kw_only=True, repr=False)
class ReleasedPosterior(Reply):
    """A normal posterior in a release, with a ``covariance`` or a ``variance``.

    ``variance`` is the diagonal of a diagonal covariance.
    """

    parameters: tuple[str, ...]
    mean: tuple[float, ...]
    covariance: tuple[Any, ...] | None = None
    variance: tuple[float, ...] | None = None


@dataclass(frozen=True, kw_only=True, repr=False)
class Reason(Reply):
    """A reason for the grade of a release: a stable ``code``, and its meaning and remedy in ``words``.

    >>> print(Reason(code="noise-dominates", words="Use more epsilon."))
    Reason(code='noise-dominates', words='Use more epsilon.')
    """

    code: str
    words: str


@dataclass(frozen=True, kw_only=True, repr=False)
class Reliability(Reply):
    """The use that a release allows.

    ``grade`` is ``calibrated``: no check of the method failed, and intervals with the stated noise may be used;
    ``centre-only``: the centre may be used, but not intervals; or ``not-usable``: neither may be used. It is not a
    guarantee. A calibrated release may have remarks as ``reasons``.

    >>> client.releases.get(release).reliability.grade
    'calibrated'
    """

    grade: str
    reasons: tuple[Reason, ...] = ()

    @property
    def is_calibrated(self) -> bool:
        """Whether no check failed, so that intervals with the stated noise may be used.

        >>> client.releases.get(release).reliability.is_calibrated
        True
        """
        return self.grade == "calibrated"


@dataclass(frozen=True, kw_only=True, repr=False)
class Release(Reply):
    """The metadata of a release, without its points.

    ``cost`` is None for public data, and for points that ``merge`` made of several releases.

    ``posterior`` is set by methods that also release a posterior, such as ``dp-vi``. ``reliability`` is None for a
    release of an earlier version.

    >>> client.releases.get(release).method
    'dp-psvi-surrogate'
    """

    SHOWN: ClassVar[tuple[str, ...]] = ("id", "dataset_id", "method", "size", "family", "grade", "cost")

    id: str
    dataset_id: str
    method: str
    size: int
    model: ReleasedModel
    design: tuple[DesignColumn, ...]
    reliability: Reliability | None = None
    diagnostics: Mapping[str, Any] | None = None
    posterior: ReleasedPosterior | None = None
    cost: Cost | None = None
    created_at: datetime | None = None

    @property
    def family(self) -> str:
        """The model family.

        >>> client.releases.get(release).family
        'logistic-regression'
        """
        return self.model.family

    @property
    def grade(self) -> str | None:
        """The grade of ``reliability``; None for a release of an earlier version.

        >>> client.releases.get(release).grade
        'calibrated'
        """
        return None if self.reliability is None else self.reliability.grade

    @property
    def trusted(self) -> bool | None:
        """Whether the grade is ``calibrated``; None if the method makes no statement.

        Releases of earlier versions have no grade. They state ``trusted`` in their diagnostics.

        >>> client.releases.get(release).trusted
        True
        """
        if self.reliability is not None:
            return self.reliability.is_calibrated
        trusted = (self.diagnostics or {}).get("trusted")
        return trusted if isinstance(trusted, bool) else None


@dataclass(frozen=True, kw_only=True, repr=False)
class Certificate(Reply):
    """A signed statement: Ed25519 (``signature``, base64) over the RFC 8785 form of ``statement``.

    >>> client.releases.certificate(release).key_id.startswith("ed25519:")
    True
    """

    SHOWN: ClassVar[tuple[str, ...]] = ("key_id",)

    statement: Mapping[str, Any]
    signature: str
    key_id: str


@dataclass(frozen=True, repr=False)
class Representation:
    """One stored representation of a part of a release, byte for byte.

    ``repr_digest`` and ``etag`` are the headers that the server has sent with it.
    """

    format: str
    content: bytes
    media_type: str
    repr_digest: str | None
    etag: str | None

    def __repr__(self) -> str:
        return f"{type(self).__name__}(format={self.format!r}, {len(self.content)} bytes)"

    @property
    def name(self) -> str:
        """The name in the certificate's digests.

        >>> client.releases.points(release, "npz").name
        'npz'
        """
        return self.format


@dataclass(frozen=True, repr=False)
class Points(Representation):
    """One stored representation of the points.

    >>> client.releases.points(release, "csv").media_type
    'text/csv; charset=utf-8'
    """


@dataclass(frozen=True, repr=False)
class StoredBelief(Representation):
    """One stored representation of the belief."""

    @property
    def name(self) -> str:
        """The name in the certificate's digests."""
        return f"belief.{self.format}"


@dataclass(frozen=True, repr=False)
class StoredGroups(Representation):
    """One stored representation of the weights of groups."""

    @property
    def name(self) -> str:
        """The name in the certificate's digests."""
        return f"groups.{self.format}"
