"""Belief networks of binary columns: the belief of ``sigmoid-belief-network``."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from corevault._arguments import describe, require_whole_number
from corevault.errors import InvalidArgument, WrongType

Array = NDArray[np.float64]

_SWEEPS = 50


@dataclass(frozen=True, eq=False, repr=False)
class BeliefNetwork:
    """A generative model of J binary columns ``names`` with K hidden bits.

    A hidden bit k is 1 with the probability ``s(hidden[k])``, where ``s`` is the logistic function. Column j is then 1
    with the probability ``s(weights[j] @ z + visible[j])``. All are means of the released distributions. The inverse
    covariance of ``weights[j]`` is ``precision`` plus the diagonal matrix of ``prior_precision[j]``.

    >>> fitted
    BeliefNetwork(3 columns, 2 hidden bits)
    """

    names: tuple[str, ...]
    weights: Array
    precision: Array
    prior_precision: Array
    hidden: Array
    visible: Array

    def sample(self, n: int, rng: np.random.Generator) -> NDArray[np.int64]:
        """``n`` synthetic rows of 0 and 1, shape ``(n, J)``, with columns as ``names``.

        They are made from the release alone, so they cost no privacy.

        >>> fitted.sample(1000, np.random.default_rng(1)).shape
        (1000, 3)
        """
        if not isinstance(rng, np.random.Generator):
            raise WrongType(f"rng must be a generator, such as numpy.random.default_rng(); {describe(rng)}.")
        require_whole_number(n, "n", lower=0)
        hidden = rng.random((n, len(self.hidden))) < expit(self.hidden)
        return np.asarray(rng.random((n, len(self.names))) < self._predict(hidden), dtype=np.int64)

    def transform(self, rows: NDArray[Any]) -> Array:
        """The expected hidden bits ``(n, K)`` of ``rows`` ``(n, J)`` of 0 and 1. The rows stay on this machine.

        >>> fitted.transform(np.array([[1, 1, 0], [0, 0, 1]])).round(1).tolist()
        [[0.9, 0.2], [0.1, 0.8]]
        """
        return self._infer(self._check(rows))

    def reconstruct(self, rows: NDArray[Any]) -> Array:
        """The probability of a 1 in each column ``(n, J)``, given ``rows``.

        It follows from the expected hidden bits of the rows, which are ``(n, J)`` of 0 and 1.

        >>> (fitted.reconstruct(np.array([[1, 1, 0], [0, 0, 1]])) > 0.5).astype(int).tolist()
        [[1, 1, 0], [0, 0, 1]]
        """
        return self._predict(self._infer(self._check(rows)))

    def __repr__(self) -> str:
        return f"BeliefNetwork({len(self.names)} columns, {len(self.hidden)} hidden bits)"

    @cached_property
    def _moments(self) -> Array:
        """The sum of the weights' second moments, ``(K, K)``."""
        diagonal = self.prior_precision[:, :, None] * np.eye(len(self.hidden))
        return np.asarray(self.weights.T @ self.weights + np.linalg.inv(self.precision + diagonal).sum(axis=0))

    def _predict(self, hidden: Array | NDArray[np.bool_]) -> Array:
        return np.asarray(expit(hidden @ self.weights.T + self.visible))

    def _check(self, rows: NDArray[Any]) -> Array:
        given = np.asarray(rows)
        if given.ndim != 2 or given.shape[1] != len(self.names):
            raise InvalidArgument(f"rows must have the shape (n, {len(self.names)}), with columns as names.")
        if not np.isin(given, (0, 1)).all():
            raise InvalidArgument("rows must be 0 or 1.")
        return given.astype(np.float64)

    def _infer(self, rows: Array) -> Array:
        """Updates the hidden bits in turn; Park et al. 2020, Equation 62, with the bound of the release."""
        own, crossed = np.diag(self._moments), self.visible @ self.weights
        fixed = (rows - 0.5) @ self.weights + self.hidden - crossed / 4 - own / 8
        others = (self._moments - np.diag(own)) / 4
        hidden = np.full(fixed.shape, 0.5)
        for _ in range(_SWEEPS):
            for unit in range(len(own)):
                hidden[:, unit] = expit(fixed[:, unit] - hidden @ others[:, unit])
        return hidden
