"""The release of a method: a pseudocoreset, its design and, if the method has one, its posterior."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from app.inference.core.model import Array64


@dataclass(frozen=True, slots=True)
class DesignColumn:
    """The source and transform of one design column (the public ``design`` of a release)."""

    name: str
    source: str | None
    transform: Mapping[str, Any]  # {"kind": "affine"|"indicator"|"constant", ...}


@dataclass(frozen=True, slots=True)
class Posterior:
    """A normal posterior of the D parameters ``names``, in the design's coordinates.

    ``covariance`` is ``(D, D)``, or ``(D,)`` if it is diagonal.
    """

    names: tuple[str, ...]
    mean: Array64  # (D,)
    covariance: Array64


@dataclass(frozen=True, slots=True)
class Pseudocoreset:
    """Weighted pseudopoints, with targets in the table's units.

    ``posterior`` is None for methods that release points only.
    """

    u: Array64  # (M, p), intercept included, columns as in ``design``
    y: Array64 | None  # (M,)
    weight: Array64  # (M,), non-negative
    design: tuple[DesignColumn, ...]
    diagnostics: Mapping[str, Any] = field(default_factory=dict)
    posterior: Posterior | None = None
