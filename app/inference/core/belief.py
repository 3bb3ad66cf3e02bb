"""The belief of a release: named distributions of the model's parameters.

A release of points may state two normal blocks. ``posterior`` is the normal posterior that the method releases, if it
releases one. ``noise`` is the normal distribution of the error in the posterior's mean: its mean is zero, and its
covariance is the release's doubt.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from app.inference.core.model import Array64

NORMAL: Final = "normal"
GAMMA: Final = "gamma"
NORMAL_GAMMA: Final = "normal-gamma"
NORMAL_INVERSE_WISHART: Final = "normal-inverse-wishart"
DIRICHLET: Final = "dirichlet"
NORMAL_ROWS: Final = "normal-rows"
PARTICLES: Final = "particles"
GROUP_WEIGHTS: Final = "group-weights"

SHAPES: Final[Mapping[str, Mapping[str, str]]] = {
    NORMAL: {"mean": "D", "covariance": "DD", "variance": "D"},
    GAMMA: {"shape": "D", "rate": "D"},
    NORMAL_GAMMA: {"mean": "D", "variance": "DD", "shape": "1", "rate": "1"},
    NORMAL_INVERSE_WISHART: {"mean": "D", "count": "1", "degrees": "1", "scale": "DD"},
    DIRICHLET: {"values": "V", "concentration": "DV"},
    NORMAL_ROWS: {"values": "V", "mean": "DV", "precision": "VV", "prior_precision": "DV"},
    PARTICLES: {"draws": "SD", "weight": "S"},
    GROUP_WEIGHTS: {
        "values": "V",
        "labels": "DV",
        "weight": "D",
        "strength": "D",
        "agreement": "D",
        "above_noise": "D",
        "noise": "1",
        "parameters": "P",
        "draws": "SP",
        "answers": "DS",
    },
}
"""Arrays by family, with their shapes.

D is the number of names, V the number of values, P the number of parameters, S the number of draws, 1 is one.
"""


@dataclass(frozen=True, slots=True)
class Block:
    """One distribution: its name, its family, and its arrays by name.

    Every block has the ``names`` ``(D,)`` of the described quantities. The other arrays depend on the family:

    - ``normal``: ``mean`` ``(D,)`` and ``covariance`` ``(D, D)``, or ``variance`` ``(D,)`` if it is diagonal.
    - ``gamma``: ``shape`` and ``rate``, each ``(D,)``.
    - ``normal-gamma``: coefficients are normal with covariance ``variance / precision``, and the precision is gamma.
      ``mean`` ``(D,)``, ``variance`` ``(D, D)``, ``shape`` and ``rate`` ``(1,)``.
    - ``normal-inverse-wishart``: a mean and a covariance matrix. ``mean`` ``(D,)``, ``count`` ``(1,)``, ``degrees``
      ``(1,)`` and ``scale`` ``(D, D)``.
    - ``dirichlet``: one distribution over the same values for each name. ``values`` ``(V,)`` are their texts,
      ``concentration`` is ``(D, V)``.
    - ``normal-rows``: a matrix of D rows, which are independent and normal over the same ``values`` ``(V,)``. ``mean``
      is ``(D, V)``. The inverse covariance of row d is ``precision`` ``(V, V)`` plus the diagonal matrix of
      ``prior_precision[d]``, which is ``(D, V)``.
    - ``particles``: weighted draws from a posterior. ``draws`` are ``(S, D)``, and ``weight`` ``(S,)`` sums to 1.
    - ``group-weights``: no distribution, but figures of groups of rows; see
      :class:`app.inference.core.release.GroupWeights`.
    """

    name: str
    family: str
    arrays: Mapping[str, NDArray[Any]]


def has_fitting_shapes(block: Block) -> bool:
    """Whether the family is known and all arrays have its shapes."""
    arrays = dict(block.arrays)
    sizes = {"D": len(arrays.pop("names")), "V": len(arrays.get("values", ())), "1": 1}
    sizes |= {"P": len(arrays.get("parameters", ())), "S": len(arrays.get("draws", ()))}
    shapes = SHAPES.get(block.family, {})
    return all(
        name in shapes and array.shape == tuple(sizes[letter] for letter in shapes[name])
        for name, array in arrays.items()
    )


def make_normal(name: str, names: Sequence[str], mean: Array64, covariance: Array64) -> Block:
    """Make a normal block; ``covariance`` is ``(D, D)``, or ``(D,)`` if it is diagonal."""
    spread = "covariance" if covariance.ndim > 1 else "variance"
    return make_block(name, NORMAL, names, {"mean": mean, spread: covariance})


def make_block(name: str, family: str, names: Sequence[str], arrays: Mapping[str, NDArray[Any]]) -> Block:
    """Make a block that describes ``names``."""
    return Block(name, family, {"names": np.array(list(names), dtype=np.str_), **arrays})
