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
    """``N(0, scale²)`` on the coefficient of each design column; ``scales`` override the scale by name.

    With ``degrees_of_freedom`` the scales share one unknown factor, which makes the prior a multivariate t.
    """

    scale: float = 1.0
    scales: Mapping[str, float] | None = None
    degrees_of_freedom: float | None = None


@dataclass(frozen=True, kw_only=True)
class ReleasedModel(Reply):
    """The model for which the pseudocoreset was made.

    The points hold the target in the table's units. ``target_transform`` maps it to the model's units, if they differ.
    """

    family: str
    features: tuple[str, ...] = ()
    target: str | None = None
    prior: Prior | None = None
    noise_scale: float | None = None
    target_transform: Mapping[str, Any] | None = None


@dataclass(frozen=True, kw_only=True)
class ReleasedPosterior(Reply):
    """A normal posterior that the release states, with ``covariance`` or a diagonal ``variance``."""

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
        """Whether the release may be used as a posterior; None if the method does not judge it.

        It is False if the search did not converge, if noise dominates the result, or if the points do not represent it.
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
    """One stored representation of the points, byte for byte. ``repr_digest`` is the received header."""

    format: str
    content: bytes
    media_type: str
    repr_digest: str | None
    etag: str | None
