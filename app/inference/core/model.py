"""The protocols of models: how rows are folded, and a likelihood with its gradients, scores and information."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

Array32 = NDArray[np.float32]
Array64 = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Expansion:
    """A weighted log-likelihood to second order at one parameter.

    ``gradient`` is ``(D,)``, ``information`` is the negative Hessian ``(D, D)``. ``scoring`` ``(D, D)`` is positive
    semi-definite; the search for a mode uses it where the information is indefinite. None: the model needs none.
    """

    value: float
    gradient: Array64
    information: Array64
    scoring: Array64 | None = None

    def __add__(self, other: "Expansion") -> "Expansion":
        """Add the log-likelihood of other rows of the same model at the same parameter."""
        return Expansion(
            self.value + other.value,
            self.gradient + other.gradient,
            self.information + other.information,
            None if self.scoring is None or other.scoring is None else self.scoring + other.scoring,
        )


PullBack = Callable[[NDArray[Any]], tuple[NDArray[Any], NDArray[Any] | None]]
"""Maps a cotangent ``(S,)`` to :meth:`Model.point_gradient` (reverse-mode differentiation)."""


class SeparateEvaluation:
    """Base of models that compute potentials of antithetic draws and derivatives separately.

    Other models share intermediate results between them, which is faster.
    """

    __slots__ = ()

    def point_potentials(
        self: "Model", u: NDArray[Any], y: NDArray[Any], draws: NDArray[Any]
    ) -> tuple[NDArray[Any], PullBack]:
        """As :meth:`Model.point_potentials`."""
        return self.log_likelihood(self.fold(u, y), draws), lambda cotangent: self.point_gradient(
            u, y, draws, cotangent
        )

    def paired_losses(self: "Model", rows: Array32, centre: Array32, deviations: Array32, out: Array32) -> Array32:
        """As :meth:`Model.paired_losses`."""
        draws = np.concatenate((centre + deviations, centre - deviations))
        losses: Array32 = np.negative(self.log_likelihood(rows, draws, out=out), out=out)
        return losses


class RowModel(Protocol):
    """The part of every model that the private zone needs: how encoded rows become folded rows."""

    @property
    def row_width(self) -> int:
        """The number of columns of folded rows."""

    def fold(self, x: NDArray[np.floating[Any]], y: NDArray[np.floating[Any]]) -> NDArray[Any]:
        """Fold encoded rows ``(n, p)`` and targets ``(n,)`` into rows ``(n, row_width)``.

        The dtype is that of ``x``. A model without a target ignores ``y``.
        """


class Model(RowModel, Protocol):
    """A likelihood of a design row and its target, with parameter ``theta``.

    A design row has p coordinates, ``theta`` has D.

    ``rows`` are folded rows ``(n, row_width)``, which :meth:`fold` makes of design rows and targets. A row of zeros is
    a null row: its log-likelihood does not depend on ``theta``. Log-likelihoods omit terms without ``theta``.

    Row zone: :meth:`log_likelihood` in single precision, :meth:`paired_losses`, :meth:`scores`,
    :meth:`bounded_scores` and :meth:`information_factors` see private rows. They take and return float32. They are
    total: for any values they neither raise nor warn, and the shape of the result is the same. They reach no subnormal
    number, because arithmetic with subnormals takes longer.
    """

    @property
    def dimension(self) -> int:
        """The number D of parameters."""

    @property
    def predictors(self) -> int:
        """The number of linear predictors.

        ``theta`` begins with one block of p coefficients for each; the rest are further parameters.
        """

    @property
    def smallest_exact(self) -> int:
        """The least number of weighted points that can represent every posterior of this model."""

    def parameter_names(self, columns: Sequence[str]) -> tuple[str, ...]:
        """Name the D parameters for a design of these ``columns``."""

    def features(self, rows: NDArray[Any]) -> NDArray[Any]:
        """Recover design coordinates ``(n, p)`` from folded rows, each row up to its sign."""

    def log_likelihood(self, rows: NDArray[Any], draws: NDArray[Any], out: NDArray[Any] | None = None) -> NDArray[Any]:
        """Compute potentials ``(n, S)`` of ``rows`` at ``draws`` ``(S, D)``.

        They are written to ``out`` if it is given.
        """

    def paired_losses(self, rows: Array32, centre: Array32, deviations: Array32, out: Array32) -> Array32:
        """Compute negative potentials ``(n, S)`` at antithetic draws, written to ``out``.

        The first half is at ``centre + deviations``, the second at ``centre - deviations``; ``centre`` is ``(D,)``,
        ``deviations`` ``(S / 2, D)``. Each row's values are defined up to a constant. Row zone.
        """

    def point_gradient(
        self, u: NDArray[Any], y: NDArray[Any], draws: NDArray[Any], cotangent: NDArray[Any]
    ) -> tuple[NDArray[Any], NDArray[Any] | None]:
        """Compute ``sum_s cotangent_s * grad f(fold(u, y), draws_s)`` in ``u`` and ``y``.

        Returns:
            The gradients in ``u`` ``(n, p)`` and in ``y`` ``(n,)``. The latter is None if the targets are discrete or
            the model has none. All arrays have one precision, single or double.
        """

    def point_potentials(self, u: NDArray[Any], y: NDArray[Any], draws: NDArray[Any]) -> tuple[NDArray[Any], PullBack]:
        """Compute potentials ``(n, S)`` of ``fold(u, y)`` and the pull-back of their gradient.

        The pull-back is :meth:`point_gradient` as a function of the cotangent; it may share work with the potentials.
        The caller may overwrite the potentials.
        """

    def expand(self, rows: Array64, weights: Array64, theta: Array64) -> Expansion:
        """Expand ``sum_m weights_m f(rows_m, .)`` to second order at ``theta``."""

    def scores(self, rows: Array32, theta: Array64) -> Array32:
        """Compute the scores ``(n, D)``: gradients of the log-likelihoods in ``theta``. Row zone."""

    def bounded_scores(self, rows: Array32, theta: Array64, transform: Array64, clip: float) -> Array32:
        """Compute bounded, conditionally unbiased scores ``(n, D)`` in the coordinates ``transform @ score``.

        Each has L2 norm at most ``clip`` for every target. Given the design row, its mean over targets that follow the
        model at ``theta`` is zero. So clipping adds no bias (Kuensch, Stefanski & Carroll, *JASA* 84, 1989). A row that
        is not finite, or whose contribution is not finite, gives zero. Row zone.
        """

    def information_factors(self, rows: Array32, theta: Array64) -> Array32:
        """Compute factors ``(n, r, D)`` of each row's Fisher information, ``sum_r f_r f_r'``. Row zone."""

    def sample_targets(self, rng: np.random.Generator, x: Array64, theta: Array64) -> Array64:
        """Draw encoded targets ``(n,)`` at design rows ``x`` ``(n, p)`` and parameter ``theta`` ``(D,)``.

        They follow the model, so they may exceed declared bounds. Zeros for a model without a target.
        """

    def starting_targets(self, rng: np.random.Generator, x: Array64) -> Array64:
        """Draw first targets ``(n,)`` of pseudopoints at design rows ``x``, independent of the data."""

    def target_step(self, y: Array64) -> Array64:
        """Give the unit ``(n,)`` in which an optimiser moves targets ``y`` ``(n,)``."""
