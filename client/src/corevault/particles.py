"""Weighted draws from a posterior, which the method ``scmc`` releases."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from corevault._arguments import describe, require_whole_number
from corevault.errors import WrongType

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False, repr=False)
class Particles:
    """P draws ``(P, D)`` of the parameters ``names`` ``(D,)`` in the design's coordinates.

    ``weight`` ``(P,)`` are the probabilities of the draws; they sum to 1.

    >>> Particles(("a",), np.array([[1.0], [3.0]]), np.array([0.5, 0.5])).mean
    array([2.])
    """

    names: tuple[str, ...]
    draws: Array
    weight: Array

    @property
    def mean(self) -> Array:
        """The mean of the posterior, ``(D,)``.

        >>> particles.mean
        array([1., 1.])
        """
        return np.asarray(self.weight @ self.draws)

    @property
    def covariance(self) -> Array:
        """The covariance of the posterior, ``(D, D)``.

        >>> particles.covariance
        array([[0.5  , 0.25 ],
               [0.25 , 0.375]])
        """
        deviations = self.draws - self.mean
        return np.asarray((deviations * self.weight[:, None]).T @ deviations)

    @property
    def effective_size(self) -> float:
        """The number of draws of equal weight with as much information: ``1 / sum(weight ** 2)``.

        >>> round(particles.effective_size, 2)
        2.67
        """
        return float(1 / np.square(self.weight).sum())

    def sample(self, n: int, rng: np.random.Generator) -> Array:
        """``n`` draws of equal weight, shape ``(n, D)``. Draws may repeat.

        >>> particles.sample(5, np.random.default_rng(1)).shape
        (5, 2)
        """
        if not isinstance(rng, np.random.Generator):
            raise WrongType(f"rng must be a generator, such as numpy.random.default_rng(); {describe(rng)}.")
        require_whole_number(n, "n", lower=0)
        return np.asarray(self.draws[rng.choice(len(self.draws), size=int(n), p=self.weight)])

    def __repr__(self) -> str:
        return f"Particles({len(self.draws)} draws of {len(self.names)} parameters)"
