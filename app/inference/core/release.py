"""What leaves: the pseudocoreset, its design and its posterior."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from app.inference.core.model import Array64


@dataclass(frozen=True, slots=True)
class DesignColumn:
    """How one design column comes from the declared table (the public ``design`` of a release)."""

    name: str
    source: str | None
    transform: Mapping[str, Any]  # {"kind": "affine"|"indicator"|"constant", ...}


@dataclass(frozen=True, slots=True)
class Posterior:
    """A normal posterior of the D parameters ``names``, in the design's coordinates.

    ``covariance`` is ``(D, D)``, or ``(D,)`` where it is diagonal.
    """

    names: tuple[str, ...]
    mean: Array64  # (D,)
    covariance: Array64


@dataclass(frozen=True, slots=True)
class Pseudocoreset:
    """What leaves: points in the design's coordinates, targets in their own units, weights.

    ``posterior`` is that of a method which finds one beside the points.
    """

    u: Array64  # (M, p), intercept included, columns as in ``design``
    y: Array64 | None  # (M,)
    weight: Array64  # (M,), non-negative
    design: tuple[DesignColumn, ...]
    diagnostics: Mapping[str, Any] = field(default_factory=dict)
    posterior: Posterior | None = None
