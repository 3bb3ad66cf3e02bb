"""Replies about releases."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from corevault.design import DesignColumn
from corevault.replies._decode import Reply
from corevault.replies.dataset import Cost


@dataclass(frozen=True, kw_only=True)
class Prior(Reply):
    """The prior ``N(0, scale²)`` of the coefficient of each design column.

    ``scales`` maps names of columns to other scales. If ``degrees_of_freedom`` is set, all scales are multiplied by the
    same unknown factor, and the prior is a multivariate t distribution.
    """

    scale: float = 1.0
    scales: Mapping[str, float] | None = None
    degrees_of_freedom: float | None = None


@dataclass(frozen=True, kw_only=True)
class ReleasedModel(Reply):
    """The model for which the pseudocoreset was made.

    In the points, a numeric target is in the table's units, and a categorical target is the index of its category.
    ``target_transform`` describes how to convert the table's target to the model's, if they differ.
    """

    family: str
    features: tuple[str, ...] = ()
    target: str | None = None
    prior: Prior | None = None
    noise_scale: float | None = None
    target_transform: Mapping[str, Any] | None = None


@dataclass(frozen=True, kw_only=True)
class ReleasedPosterior(Reply):
    """A normal posterior in a release, with a ``covariance`` or a ``variance``.

    ``variance`` is the diagonal of a diagonal covariance.
    """

    parameters: tuple[str, ...]
    mean: tuple[float, ...]
    covariance: tuple[Any, ...] | None = None
    variance: tuple[float, ...] | None = None


@dataclass(frozen=True, kw_only=True)
class Release(Reply):
    """The public metadata of a release, without its points. ``cost`` is None for public data.

    ``posterior`` is set by methods that also release a posterior, such as ``dp-vi``.
    """

    id: str
    dataset_id: str
    method: str
    size: int
    model: ReleasedModel
    design: tuple[DesignColumn, ...]
    diagnostics: Mapping[str, Any] | None = None
    posterior: ReleasedPosterior | None = None
    cost: Cost | None = None
    created_at: datetime | None = None

    @property
    def trusted(self) -> bool | None:
        """Whether the release may be used as a posterior; None if the method makes no statement.

        It is False in three cases: the search did not converge, noise dominates the result, or the points do not
        represent the result.
        """
        trusted = (self.diagnostics or {}).get("trusted")
        return trusted if isinstance(trusted, bool) else None


@dataclass(frozen=True, kw_only=True)
class Certificate(Reply):
    """A signed statement: Ed25519 (``signature``, base64) over the RFC 8785 form of ``statement``."""

    statement: Mapping[str, Any]
    signature: str
    key_id: str


@dataclass(frozen=True)
class Points:
    """One stored representation of the points, byte for byte.

    ``repr_digest`` and ``etag`` are the headers that the server has sent with it.
    """

    format: str
    content: bytes
    media_type: str
    repr_digest: str | None
    etag: str | None
