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
    """``N(0, scale²)`` on each coefficient of exactly the design's columns; ``scales`` override it by name.

    With ``degrees_of_freedom`` the scales share one unknown factor: a multivariate t.
    """

    scale: float = 1.0
    scales: Mapping[str, float] | None = None
    degrees_of_freedom: float | None = None


@dataclass(frozen=True, kw_only=True)
class ReleasedModel(Reply):
    """The model that the pseudocoreset was made for.

    ``target_transform`` says how it sees a target that the points hold in the table's units, where not as it is.
    """

    family: str
    features: tuple[str, ...] = ()
    target: str | None = None
    prior: Prior | None = None
    noise_scale: float | None = None
    target_transform: Mapping[str, Any] | None = None


@dataclass(frozen=True, kw_only=True)
class ReleasedPosterior(Reply):
    """A normal posterior that was found beside the points: ``covariance``, or ``variance`` where it is diagonal."""

    parameters: tuple[str, ...]
    mean: tuple[float, ...]
    covariance: tuple[Any, ...] | None = None
    variance: tuple[float, ...] | None = None


@dataclass(frozen=True, kw_only=True)
class Release(Reply):
    """What is public of a release, apart from its points. ``cost`` is None for public data.

    ``posterior`` is there for methods that find one beside the points, such as ``dp-vi``.
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
        """Whether the run itself would use its result as a posterior; None where the method does not say.

        False: the search had not arrived, noise is most of what it found, or the points do not represent it.
        """
        stated = (self.diagnostics or {}).get("trusted")
        return stated if isinstance(stated, bool) else None


@dataclass(frozen=True, kw_only=True)
class Certificate(Reply):
    """A signed statement: Ed25519 (``signature``, base64) over the RFC 8785 form of ``statement``."""

    statement: Mapping[str, Any]
    signature: str
    key_id: str


@dataclass(frozen=True)
class Points:
    """One stored representation of the points, byte for byte. ``repr_digest`` is the header as received."""

    format: str
    content: bytes
    media_type: str
    repr_digest: str | None
    etag: str | None
