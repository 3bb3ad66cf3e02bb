"""Sigmoid belief networks of binary columns (Park et al. 2020, Algorithm 6), as a conjugate-exponential model.

A row ``y`` of J bits has K hidden bits ``z`` with ``P(z_k = 1) = s(b_k)`` and ``P(y_j = 1) = s(w_j'z + c_j)``, where
``s`` is the logistic function. The weights have the prior ``w_jk ~ N(0, zeta_jk)`` with a hierarchy of gamma
distributions above, which shrinks most of them. The biases ``b`` and ``c`` are normal.

The published algorithm has a Polya-Gamma variable for each bit of each row. Its sums have a K x K matrix for each of J
columns, and their noise is ``sqrt(J)`` times as large as here. Here all these variables are at their upper bound 1/4,
which is the bound ``log s(x) >= x / 2 - x^2 / 8 - log 2``. Then one K x K matrix is enough. Signs differ from the
published Equations 57 and 77, which have a factor 1/2 too many.

Fixed statistics: the count, and ``y - 1/2`` of norm ``sqrt(J) / 2``. Moving ones: ``<z> - 1/2`` of norm at most
``sqrt(K) / 2``, ``(y - 1/2) <z>'`` at most ``sqrt(J K) / 2``, and ``<z z'>`` at most K, because all entries are at most
1. The number of rows is private, so it is asked.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Final, NamedTuple

import numpy as np
import scipy
from numpy.typing import NDArray

from app.errors import InvalidRequest
from app.inference.core import reasons
from app.inference.core.belief import NORMAL_ROWS, make_block, make_normal
from app.inference.core.design import Design, build
from app.inference.core.facts import DeclaredFacts
from app.inference.core.model import Array32, Array64
from app.inference.core.plan import ModelSpec
from app.inference.core.priors import check_scale
from app.inference.core.release import DesignColumn, Grade
from app.inference.core.statistics import (
    CERTAIN,
    STATISTIC_SUM,
    Averages,
    Conclusion,
    ConjugateModel,
    RowEncoder,
    StatisticBlock,
    compute_packed_length,
    measure_signal,
    multiply_pairs,
    raise_to_noise,
    unpack_symmetric,
)
from app.inference.models.without_likelihood import SIGMOID_BELIEF

COUNT: Final = "count"
VISIBLE: Final = "visible"
HIDDEN: Final = "hidden"
PRODUCTS: Final = "products"
PAIRS: Final = "pairs"
SWEEPS: Final = 10
MOST_VALUES: Final = 100_000
"""Largest number of columns times hidden units; the grid loses a tenth of the clipping norm at about 400,000."""
BATCH: Final = 3000
LEAST_SIGNAL: Final = 1.0
"""Least signal of a usable release: the products of bits and hidden bits, beyond independence, over their noise."""
LARGEST_LOGIT: Final = 100.0
"""Largest weight or bias: a probability of 1 to forty digits. So every answer gives a finite belief."""
_INNER: Final = 6
"""Steps between weights, biases and prior variances after an answer; they cost no privacy."""
_MOST_LOGIT: Final = np.float32(30)
_LEAST, _MOST = 1e-8, 1e8
"""Range of expectations of the prior's variables, so that every answer gives a finite belief."""


class Network(NamedTuple):
    """The variational posterior: means and covariances of weights by row, and normal biases.

    ``weights`` and ``prior_precisions`` are ``(J, K)``, ``covariances`` ``(J, K, K)``, and ``curvature`` is ``(K, K)``.
    The inverse of a covariance is the curvature plus the row's diagonal prior precision.
    """

    weights: Array64
    covariances: Array64
    prior_precisions: Array64
    curvature: Array64
    hidden: Array64
    hidden_variance: Array64
    visible: Array64
    visible_variance: Array64


@dataclass(frozen=True, slots=True)
class BitEncoder:
    """Encodes binary columns as 0 and 1, where ``design`` has -1 and 1."""

    design: Design

    @property
    def columns(self) -> tuple[DesignColumn, ...]:
        """The columns, with their values as they are."""
        same = {"kind": "affine", "type": "binary", "center": 0.0, "scale": 1.0}
        return tuple(DesignColumn(column.name, column.source, same) for column in self.design.columns)

    def encode(self, table: Mapping[str, NDArray[Any]]) -> tuple[Array32, Array64, NDArray[np.bool_]]:
        """Encode as :meth:`app.inference.core.design.Design.encode`. Row zone."""
        signs, y, present = self.design.encode(table)
        return (signs + np.float32(1)) * np.float32(0.5) * present[:, None], y, present


@dataclass(frozen=True, slots=True)
class SigmoidBelief:
    """The model of ``visible`` columns and ``units`` hidden units.

    Biases have the prior scale ``scale``. A belief ``(J + K + 2, K)`` determines the hidden bits of a row: the means of
    the weights ``(J, K)``, the sum of their second moments ``(K, K)``, the biases ``b``, and ``sum_j c_j <w_j>``.
    """

    visible: int
    units: int
    scale: float
    slots: int
    kind: ClassVar[str] = STATISTIC_SUM
    usual_share: ClassVar[float | None] = None
    tail: ClassVar[float] = 0.0
    largest_radius: ClassVar[float] = 1.0
    usual_iterations: ClassVar[int] = 20

    @property
    def row_width(self) -> int:
        """The bits and the presence."""
        return self.visible + 1

    @property
    def usual_batch(self) -> int:
        """A twentieth of the slots, but at least :data:`BATCH`."""
        return max(BATCH, math.ceil(self.slots / 20))

    @property
    def belief_shape(self) -> tuple[int, ...]:
        """``(J + K + 2, K)``."""
        return (self.visible + self.units + 2, self.units)

    def fold(self, x: NDArray[np.floating[Any]], y: NDArray[np.floating[Any]]) -> NDArray[Any]:
        """Fold to ``[y, 1]``."""
        return np.column_stack((x, np.ones(len(x), dtype=x.dtype)))

    def list_blocks(self, radius: float, *, moving: bool) -> tuple[StatisticBlock, ...]:
        """List the statistics with the bounds of the module's docstring."""
        j, k = self.visible, self.units
        if not moving:
            return (StatisticBlock(COUNT, 1, 1.0), StatisticBlock(VISIBLE, j, math.sqrt(j) / 2))
        return (
            StatisticBlock(HIDDEN, k, math.sqrt(k) / 2),
            StatisticBlock(PRODUCTS, j * k, math.sqrt(j * k) / 2),
            StatisticBlock(PAIRS, compute_packed_length(k), float(k)),
        )

    @np.errstate(all="ignore")
    def contribute(self, rows: Array32, belief: Array64, radius: float, *, moving: bool) -> Array32:
        """Compute the statistics of rows ``[y, 1]``; the last column is the presence."""
        there = rows[:, -1:]
        bits = rows[:, :-1] - np.float32(0.5) * there
        if not moving:
            return np.concatenate((there, bits), axis=1)
        hidden = self.infer_hidden(bits, belief)
        pairs = multiply_pairs(hidden)
        row, column = np.triu_indices(self.units)
        pairs[:, row == column] = hidden
        products = (bits[:, :, None] * hidden[:, None, :]).reshape(len(rows), -1)
        values = np.concatenate((hidden - np.float32(0.5), products, pairs), axis=1)
        values *= there
        return values

    def infer_hidden(self, bits: Array32, belief: Array64) -> Array32:
        """Compute the expected hidden bits ``(n, K)`` of rows ``y - 1/2`` ``(n, J)``. Row zone.

        Each unit is updated in turn, given the expectations of the others (Equation 62 at the bound 1/4).
        """
        weights, moments, biases, crossed = self._split(belief.astype(np.float32))
        own = np.diagonal(moments)
        fixed = bits @ weights + (biases - np.float32(0.25) * crossed - np.float32(0.125) * own)
        others = np.float32(0.25) * (moments - np.diag(own))
        hidden = np.full(fixed.shape, np.float32(0.5))
        for _ in range(SWEEPS):
            for unit in range(self.units):
                logit = fixed[:, unit] - hidden @ np.ascontiguousarray(others[:, unit])
                hidden[:, unit] = 1 / (1 + np.exp(-np.clip(logit, -_MOST_LOGIT, _MOST_LOGIT)))
        return hidden

    def start(self, rng: np.random.Generator) -> Array64:
        """Draw small weights, which make hidden units differ."""
        weights = 0.1 * rng.standard_normal((self.visible, self.units))
        return self._pack(weights, weights.T @ weights, np.zeros(self.units), np.zeros(self.visible))

    def update(self, averages: Averages, belief: Array64) -> Array64:
        """Compute the next belief from the posterior of weights and biases."""
        found, _ = self.solve(averages)
        moments = found.weights.T @ found.weights + found.covariances.sum(axis=0)
        return self._pack(found.weights, moments, found.hidden, found.visible)

    def conclude(self, averages: Averages, columns: Sequence[str]) -> Conclusion:
        """Make the normal distributions of weights and biases."""
        found, floored = self.solve(averages)
        names = [f"unit {index + 1}" for index in range(self.units)]
        arrays = {
            "values": np.array(names),
            "mean": found.weights,
            "precision": found.curvature,
            "prior_precision": found.prior_precisions,
        }
        blocks = (
            make_block("weights", NORMAL_ROWS, columns, arrays),
            make_normal("hidden", names, found.hidden, found.hidden_variance),
            make_normal("visible", columns, found.visible, found.visible_variance),
        )
        rows, signal = float(averages.sums[COUNT][0]), self._compute_signal(averages)
        findings = [(reasons.VARIATIONAL, Grade.CENTRE_ONLY)]
        if floored:
            findings.append((reasons.NOISE_NOT_KNOWN, Grade.CENTRE_ONLY))
        if rows <= CERTAIN * averages.noise[COUNT]:
            findings.append((reasons.FEW_ROWS, Grade.NOT_USABLE))
        if not signal > LEAST_SIGNAL:
            findings.append((reasons.NOISE_DOMINATES, Grade.NOT_USABLE))
        return Conclusion(blocks, {"rows": rows, "signal": signal}, findings)

    def solve(self, averages: Averages) -> tuple[Network, bool]:
        """Compute the posterior, and whether noise hides an eigenvalue of pairs."""
        sums, units = averages.sums, self.units
        count = max(float(sums[COUNT][0]), 1.0)
        hidden = sums[HIDDEN] + count / 2
        pairs, floored = raise_to_noise(unpack_symmetric(sums[PAIRS]), averages.noise[PAIRS])
        products = sums[PRODUCTS].reshape(self.visible, units)
        curvature, prior = pairs / 4, 1 / self.scale**2
        visible_variance = 1 / (prior + count / 4)
        visible = _limit(sums[VISIBLE] * visible_variance)
        precisions, tops = np.ones((self.visible, units)), np.ones((self.visible, units))
        for _ in range(_INNER):
            covariances = np.asarray(np.linalg.inv(curvature + precisions[:, :, None] * np.eye(units)))
            weights = _limit(np.einsum("jkl,jl->jk", covariances, products - np.outer(visible, hidden / 4)))
            visible = _limit((sums[VISIBLE] - weights @ hidden / 4) * visible_variance)
            squares = weights**2 + np.diagonal(covariances, axis1=1, axis2=2)
            precisions, tops = shrink_weights(squares, tops)
        biases, spread = self.solve_biases(sums[HIDDEN], count, prior)
        return (
            Network(
                weights,
                covariances,
                precisions,
                curvature,
                biases,
                spread,
                visible,
                np.full(self.visible, visible_variance),
            ),
            floored,
        )

    def solve_biases(self, score: Array64, count: float, prior: float) -> tuple[Array64, Array64]:
        """Solve for the hidden biases, whose Polya-Gamma variable is the same in every row."""
        mean, variance = np.zeros(self.units), np.full(self.units, 1 / prior)
        for _ in range(_INNER):
            length = np.maximum(np.sqrt(mean**2 + variance), 1e-3)
            variance = 1 / (prior + count * np.tanh(length / 2) / (2 * length))
            mean = _limit(score * variance)
        return mean, variance

    def _compute_signal(self, averages: Averages) -> float:
        """Compute the products of bits and hidden bits beyond independence, over their noise."""
        sums = averages.sums
        count = max(float(sums[COUNT][0]), 1.0)
        alone = np.outer(sums[VISIBLE], sums[HIDDEN] / count + 0.5).ravel()
        return measure_signal(sums[PRODUCTS], alone, averages.noise[PRODUCTS])

    def _pack(self, weights: Array64, moments: Array64, hidden: Array64, visible: Array64) -> Array64:
        return np.vstack((weights, moments, hidden, visible @ weights))

    def _split(self, belief: Array32) -> tuple[Array32, Array32, Array32, Array32]:
        j, k = self.visible, self.units
        return belief[:j], belief[j : j + k], belief[j + k], belief[j + k + 1]


def _limit(values: Array64) -> Array64:
    return np.asarray(np.clip(values, -LARGEST_LOGIT, LARGEST_LOGIT))


def shrink_weights(squares: Array64, tops: Array64) -> tuple[Array64, Array64]:
    """Update the prior's variables from second moments of weights ``(J, K)``.

    ``zeta_jk ~ Gamma(1/2, xi_jk)``, ``xi_jk ~ Gamma(1/2, phi_k)``, ``phi_k ~ Gamma(1/2, omega)`` and ``omega ~
    Gamma(1/2, 1)``. So ``q(zeta)`` is generalised inverse Gaussian.

    Returns:
        The expected prior precisions ``1 / zeta``, and the expected ``xi``.
    """
    visible, units = squares.shape
    rate = np.maximum(2 * tops, _LEAST)
    product = np.clip(np.sqrt(rate * np.maximum(squares, _LEAST)), _LEAST, _MOST)
    ratio = scipy.special.k1e(product) / scipy.special.k0e(product)
    scale = np.sqrt(rate / np.maximum(squares, _LEAST))
    column = (visible + 1) / 2 / (1 + tops.sum(axis=0))
    top = (units + 1) / 2 / (1 + column.sum())
    column = (visible + 1) / 2 / (top + tops.sum(axis=0))
    return np.clip(scale * ratio, _LEAST, _MOST), np.clip(1 / (ratio / scale + column), _LEAST, _MOST)


def make_statistics(spec: ModelSpec, facts: DeclaredFacts) -> tuple[ConjugateModel, RowEncoder]:
    """Make the model and its encoder.

    Raises:
        InvalidRequest: pointing into ``/model``.
    """
    SIGMOID_BELIEF.check_settings(spec)
    design = build(spec, facts, SIGMOID_BELIEF)
    units = int(SIGMOID_BELIEF.read_setting(spec, "hidden_units"))
    if design.width * units > MOST_VALUES:
        raise InvalidRequest.at(
            "/model/hidden_units", f"Features times hidden units may be at most {MOST_VALUES:,}. Use fewer of them."
        )
    if spec.prior.scales:
        raise InvalidRequest.at("/model/prior/scales", "This model has one prior scale; state it as scale.")
    if spec.prior.degrees_of_freedom is not None:
        raise InvalidRequest.at("/model/prior/degrees_of_freedom", "This model has no such prior; leave it out.")
    model = SigmoidBelief(design.width, units, check_scale(spec.prior.scale), facts.slots)
    return model, BitEncoder(design)
