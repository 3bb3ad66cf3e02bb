"""The belief of a release: named distributions of the model's parameters.

``posterior`` is the normal posterior that the method releases, if it releases one. ``noise`` is the normal distribution
of the error in the posterior's mean: its mean is zero, and its covariance is the release's doubt.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from app.inference.core.model import Array64
from app.inference.core.release import Pseudocoreset

NORMAL: Final = "normal"


@dataclass(frozen=True, slots=True)
class Block:
    """One distribution: its name, its family, and its arrays by name.

    A normal block has ``names`` ``(D,)`` of the parameters, ``mean`` ``(D,)``, and ``covariance`` ``(D, D)``. A
    diagonal one has ``variance`` ``(D,)`` instead of a covariance.
    """

    name: str
    family: str
    arrays: Mapping[str, NDArray[Any]]


def make_belief(points: Pseudocoreset, names: Sequence[str]) -> tuple[Block, ...]:
    """Make the blocks of a release whose D parameters have these ``names``; empty if it has none."""
    blocks = []
    if points.posterior is not None:
        blocks.append(
            _make_normal("posterior", points.posterior.names, points.posterior.mean, points.posterior.covariance)
        )
    if points.doubt is not None:
        blocks.append(_make_normal("noise", names, np.zeros(len(names)), points.doubt))
    return tuple(blocks)


def _make_normal(name: str, names: Sequence[str], mean: Array64, covariance: Array64) -> Block:
    spread = "covariance" if covariance.ndim > 1 else "variance"
    return Block(name, NORMAL, {"names": np.array(list(names), dtype=np.str_), "mean": mean, spread: covariance})
