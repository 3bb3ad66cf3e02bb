"""Sigmoid belief networks with one bound for each bit: the published form of the statistics, for ``make sbn``.

Each bit of a row has a Polya-Gamma variable with the expectation ``xi_nj = tanh(c/2) / (2c)``, where ``c^2`` is the
expected square of its logit (Park et al. 2020, Equations 60 to 62). So each column j has a K x K matrix ``sum_n xi_nj
<z z'>``. The service's form sets all ``xi`` to 1/4, and one matrix is enough. Bounds under zero-out: ``xi`` has norm at
most ``sqrt(J) / 4``, ``xi <z>'`` ``sqrt(J K) / 4``, and the matrices ``K sqrt(J) / 4``. The others are as in
:mod:`app.inference.conjugate.belief_network`.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
from numpy.typing import NDArray

from app.inference.conjugate.belief_network import COUNT, HIDDEN, PRODUCTS, VISIBLE, SigmoidBelief, shrink_weights
from app.inference.core.belief import make_normal
from app.inference.core.facts import DeclaredFacts
from app.inference.core.model import Array32, Array64
from app.inference.core.plan import MechanismPlan
from app.inference.core.release import BeliefRelease
from app.inference.core.row_source import RowSource
from app.inference.core.statistics import (
    Averages,
    Conclusion,
    RowEncoder,
    StatisticBlock,
    compute_packed_length,
    multiply_pairs,
    pack_symmetric,
    raise_to_noise,
    unpack_symmetric,
)
from app.inference.methods.vips.method import Vips
from app.inference.methods.vips.schedule import make_schedule, plan_queries
from app.inference.methods.vips.state import Setup, State
from app.inference.private_zone.mechanisms import NoiseSource
from app.inference.private_zone.oracle import ClippedGaussianOracle

CURVES: Final = "curves"
CURVED: Final = "curved"
MATRICES: Final = "matrices"
_SWEEPS, _INNER = 6, 6
_MOST_LOGIT: Final = np.float32(30)
_LEAST_SQUARE: Final = np.float32(1e-6)


@dataclass(frozen=True, slots=True)
class PixelBounds(SigmoidBelief):
    """The model; a belief ``(J + 1, K + P + 2)`` has a line for each column, and one for the hidden biases.

    A line has the mean of the weights ``(K,)``, their packed second moments ``(P,)``, and the mean and second moment of
    the bias.
    """

    @property
    def pairs(self) -> int:
        """The number of values P of a packed matrix."""
        return compute_packed_length(self.units)

    @property
    def belief_shape(self) -> tuple[int, ...]:
        """``(J + 1, K + P + 2)``."""
        return (self.visible + 1, self.units + self.pairs + 2)

    def list_blocks(self, radius: float, *, moving: bool) -> tuple[StatisticBlock, ...]:
        """List the statistics with the bounds of the module's docstring."""
        if not moving:
            return super(PixelBounds, self).list_blocks(radius, moving=False)
        j, k = self.visible, self.units
        return (
            StatisticBlock(HIDDEN, k, math.sqrt(k) / 2),
            StatisticBlock(CURVES, j, math.sqrt(j) / 4),
            StatisticBlock(CURVED, j * k, math.sqrt(j * k) / 4),
            StatisticBlock(PRODUCTS, j * k, math.sqrt(j * k) / 2),
            StatisticBlock(MATRICES, j * self.pairs, k * math.sqrt(j) / 4),
        )

    @np.errstate(all="ignore")
    def contribute(self, rows: Array32, belief: Array64, radius: float, *, moving: bool) -> Array32:
        """Compute the statistics of rows ``[y, 1]``; the last column is the presence."""
        if not moving:
            return super(PixelBounds, self).contribute(rows, belief, radius, moving=False)
        there, count = rows[:, -1:], len(rows)
        bits = rows[:, :-1] - np.float32(0.5) * there
        hidden, curves, products = self.infer(bits, belief)
        parts = (
            hidden - np.float32(0.5),
            curves,
            (curves[:, :, None] * hidden[:, None, :]).reshape(count, -1),
            (bits[:, :, None] * hidden[:, None, :]).reshape(count, -1),
            (curves[:, :, None] * products[:, None, :]).reshape(count, -1),
        )
        values: Array32 = np.concatenate(parts, axis=1)
        values *= there
        return values

    def infer(self, bits: Array32, belief: Array64) -> tuple[Array32, Array32, Array32]:
        """Infer the hidden bits of rows ``y - 1/2`` ``(n, J)``.

        Hidden bits and ``xi`` are updated in turn (Equation 62).

        Returns:
            Expected hidden bits ``(n, K)``, ``xi`` ``(n, J)``, and packed ``<z z'>`` ``(n, P)``.
        """
        lines, units = belief.astype(np.float32), self.units
        weights, moments = lines[:-1, :units], lines[:-1, units:-2]
        crossed = lines[:-1, -2:-1] * weights
        fixed = bits @ weights + lines[-1, :units]
        curves: Array32 = np.full(bits.shape, np.float32(0.25))
        hidden: Array32 = np.full((len(bits), units), np.float32(0.5))
        for _ in range(_SWEEPS):
            matrices = unpack_rows(curves @ moments, units)
            hidden = self._update_hidden(fixed - curves @ crossed, matrices, hidden)
            products = multiply_hidden(hidden)
            squares = products @ moments.T + 2 * hidden @ crossed.T + lines[:-1, -1]
            root = np.sqrt(np.maximum(squares, _LEAST_SQUARE))
            curves = (np.tanh(root / 2) / (2 * root)).astype(np.float32)
        return hidden, curves, products

    def _update_hidden(self, fixed: Array32, matrices: Array32, hidden: Array32) -> Array32:
        for unit in range(self.units):
            own = matrices[:, unit, unit]
            others = np.vecdot(matrices[:, unit], hidden) - own * hidden[:, unit]
            logit = fixed[:, unit] - others - np.float32(0.5) * own
            hidden[:, unit] = 1 / (1 + np.exp(-np.clip(logit, -_MOST_LOGIT, _MOST_LOGIT)))
        return hidden

    def start(self, rng: np.random.Generator) -> Array64:
        """Draw small weights, which make hidden units differ."""
        weights = 0.1 * rng.standard_normal((self.visible, self.units))
        zero = np.zeros(self.visible)
        return self._pack_lines(weights, np.zeros((self.visible, self.units, self.units)), zero, zero, 0.0)

    def update(self, averages: Averages, belief: Array64) -> Array64:
        """Compute the next belief from the posterior of weights and biases."""
        return self._solve_lines(averages)

    def conclude(self, averages: Averages, columns: Sequence[str]) -> Conclusion:
        """State the biases alone; :func:`run_form` keeps the belief."""
        lines = self._solve_lines(averages)
        variance = lines[:-1, -1] - lines[:-1, -2] ** 2
        return Conclusion((make_normal("visible", columns, lines[:-1, -2], variance),), {}, ())

    def _solve_lines(self, averages: Averages) -> Array64:
        """Compute the posterior of weights and biases by column.

        Eigenvalues and ``xi`` are raised to the edge of their noise.
        """
        sums, noise, j, k = averages.sums, averages.noise, self.visible, self.units
        count, prior = max(float(sums[COUNT][0]), 1.0), 1 / self.scale**2
        curvatures = np.array(
            [
                raise_to_noise(unpack_symmetric(each), noise[MATRICES])[0]
                for each in sums[MATRICES].reshape(j, self.pairs)
            ]
        )
        products, curved = sums[PRODUCTS].reshape(j, k), sums[CURVED].reshape(j, k)
        bias_variance = 1 / (prior + np.clip(sums[CURVES], min(noise[CURVES], count / 4), count / 4))
        biases = sums[VISIBLE] * bias_variance
        precisions, tops = np.ones((j, k)), np.ones((j, k))
        for _ in range(_INNER):
            covariances = np.asarray(np.linalg.inv(curvatures + precisions[:, :, None] * np.eye(k)))
            weights = np.clip(np.einsum("jkl,jl->jk", covariances, products - biases[:, None] * curved), -100, 100)
            biases = np.clip((sums[VISIBLE] - np.vecdot(curved, weights)) * bias_variance, -100, 100)
            squares = weights**2 + np.diagonal(covariances, axis1=1, axis2=2)
            precisions, tops = shrink_weights(squares, tops)
        hidden, _ = self.solve_biases(sums[HIDDEN], count, prior)
        return self._pack_lines(weights, covariances, biases, bias_variance, hidden)

    def _pack_lines(
        self, weights: Array64, covariances: Array64, biases: Array64, variance: Array64, hidden: Array64 | float
    ) -> Array64:
        moments = np.array(
            [pack_symmetric(each + np.outer(w, w)) for each, w in zip(covariances, weights, strict=True)]
        )
        lines = np.column_stack((weights, moments, biases, variance + biases**2))
        last = np.zeros((1, lines.shape[1]))
        last[0, : self.units] = hidden
        return np.vstack((lines, last))


def multiply_hidden(hidden: Array32) -> Array32:
    """Compute packed ``<z z'>`` ``(n, P)`` of independent bits with expectations ``(n, K)``."""
    products = multiply_pairs(hidden)
    row, column = np.triu_indices(hidden.shape[1])
    products[:, row == column] = hidden
    return products


def unpack_rows(packed: Array32, side: int) -> Array32:
    """Unpack matrices ``(n, P)`` to ``(n, K, K)``."""
    row, column = np.triu_indices(side)
    matrices = np.zeros((len(packed), side, side), dtype=np.float32)
    values = packed * np.where(row == column, 1.0, math.sqrt(0.5)).astype(np.float32)
    matrices[:, row, column] = values
    matrices[:, column, row] = values
    return matrices


def run_form(  # noqa: PLR0917  (parts of a run)
    model: PixelBounds,
    encoder: RowEncoder,
    plan: MechanismPlan,
    facts: DeclaredFacts,
    source: RowSource,
    noise: NoiseSource,
    seed: int,
) -> Array64:
    """Run ``vips`` with this model in the place of the service's; return the last belief."""
    assert plan.mechanism is not None, "a private plan"
    schedule = make_schedule(model, plan.mechanism)
    plan = replace(plan, queries=plan_queries(model, schedule))
    oracle = ClippedGaussianOracle(model, plan, facts, source, noise=noise, sampling=np.random.default_rng(1000 + seed))
    rng = np.random.default_rng(seed)
    state = State(Setup(model, encoder, plan, facts, schedule), 0, model.largest_radius, model.start(rng))
    for _ in range(plan.steps):
        state = Vips().step(rng, state, oracle)
    assert isinstance(state.released, BeliefRelease)
    return state.belief


def reconstruct(model: PixelBounds, belief: Array64, rows: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Compute which bits ``(n, J)`` are probable, given expected hidden bits."""
    hidden, _, _ = model.infer(rows.astype(np.float32) - np.float32(0.5), belief)
    return np.asarray(hidden @ belief[:-1, : model.units].T + belief[:-1, -2] > 0)
