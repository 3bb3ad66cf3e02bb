"""What a model is: a likelihood of design rows, with the parts of it that private rows may meet."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

Array32 = NDArray[np.float32]
Array64 = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Expansion:
    """A weighted log-likelihood at one parameter: value, gradient ``(D,)``, negative Hessian ``(D, D)``."""

    value: float
    gradient: Array64
    information: Array64


PullBack = Callable[[NDArray[Any]], tuple[NDArray[Any], NDArray[Any] | None]]
"""From a cotangent ``(S,)`` to :meth:`Model.point_gradient`."""


class Apart:
    """For models whose potentials have nothing in common that is worth its while: with those of an antithetic draw, or
    with their own derivatives.
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


class Model(Protocol):
    """A likelihood of a design row of p coordinates (and its target), with a parameter ``theta`` in R^D.

    ``rows`` are whatever :meth:`fold` makes of design rows and targets, ``(n, row_width)``; a row of zeros is null: its
    log-likelihood does not depend on ``theta``. Log-likelihoods leave out what does not depend on ``theta``.

    Row zone: :meth:`log_likelihood` in single precision, :meth:`paired_losses`, :meth:`scores`,
    :meth:`bounded_scores` and :meth:`information_factors` see private rows. They take and give float32, are total
    (whatever the values, no error, no warning, the shape stays), and reach no subnormal number, which would take
    longer.
    """

    @property
    def dimension(self) -> int:
        """The number D of parameters."""

    @property
    def predictors(self) -> int:
        """Coefficients come first in ``theta``, in this many blocks of p; what is left are parameters of their own."""

    @property
    def row_width(self) -> int:
        """The number of columns of folded rows."""

    @property
    def smallest_exact(self) -> int:
        """The least number of weighted points that can represent a posterior of this model."""

    def parameter_names(self, columns: Sequence[str]) -> tuple[str, ...]:
        """The D parameters by name, for a design of these ``columns``."""

    def fold(self, x: NDArray[np.floating[Any]], y: NDArray[np.floating[Any]]) -> NDArray[Any]:
        """Rows from design rows ``(n, p)`` and targets ``(n,)``, as the design encodes both; dtype of ``x``.

        A model without a target looks at ``y`` not at all.
        """

    def features(self, rows: NDArray[Any]) -> NDArray[Any]:
        """Design coordinates ``(n, p)`` of folded rows, each row up to its sign."""

    def log_likelihood(self, rows: NDArray[Any], draws: NDArray[Any], out: NDArray[Any] | None = None) -> NDArray[Any]:
        """Potentials ``(n, S)`` of ``rows`` at ``draws`` ``(S, D)``, written to ``out`` where given."""

    def paired_losses(self, rows: Array32, centre: Array32, deviations: Array32, out: Array32) -> Array32:
        """Negative potentials ``(n, S)`` at ``centre + deviations``, then ``centre - deviations``, written to ``out``.

        Each row's are known up to a constant. ``centre`` is ``(D,)``, ``deviations`` ``(S / 2, D)``. Row zone.
        """

    def point_gradient(
        self, u: NDArray[Any], y: NDArray[Any], draws: NDArray[Any], cotangent: NDArray[Any]
    ) -> tuple[NDArray[Any], NDArray[Any] | None]:
        """``sum_s cotangent_s * grad f(fold(u, y), draws_s)`` in ``u`` ``(n, p)`` and in ``y`` ``(n,)``.

        The latter is None for targets that are discrete, or that there are none of: they stay. All arrays are of one
        precision, single or double.
        """

    def point_potentials(self, u: NDArray[Any], y: NDArray[Any], draws: NDArray[Any]) -> tuple[NDArray[Any], PullBack]:
        """:meth:`log_likelihood` ``(n, S)`` of ``fold(u, y)``, and :meth:`point_gradient` as a function of what is
        left, which may share work with it. The potentials may be overwritten.
        """

    def expand(self, rows: Array64, weights: Array64, theta: Array64) -> Expansion:
        """``sum_m weights_m f(rows_m, .)`` to second order at ``theta``."""

    def scores(self, rows: Array32, theta: Array64) -> Array32:
        """Gradients of the log-likelihoods in ``theta``, ``(n, D)``. Row zone."""

    def bounded_scores(self, rows: Array32, theta: Array64, transform: Array64, clip: float) -> Array32:
        """Scores in the coordinates ``transform @ score``, bounded and conditionally unbiased, ``(n, D)``. Row zone.

        Each has L2 norm at most ``clip`` whatever its target, and mean zero over targets that follow the model at
        ``theta``, given its design row (Kuensch, Stefanski & Carroll 1989): nothing that clipping biases is left.
        A row that is not finite, or whose contribution is not, gives zero.
        """

    def information_factors(self, rows: Array32, theta: Array64) -> Array32:
        """``(n, r, D)``: over a row's factors ``f``, ``sum f f'`` is its expected information. Row zone."""

    def sample_targets(self, rng: np.random.Generator, x: Array64, theta: Array64) -> Array64:
        """Targets ``(n,)``, as the design encodes them, drawn at design rows ``x`` and parameter ``theta`` (D,).

        They follow the model, so a bound of the declaration need not hold. Zeros for a model without a target.
        """

    def starting_targets(self, rng: np.random.Generator, x: Array64) -> Array64:
        """Targets ``(n,)`` of pseudopoints that start at design rows ``x``, knowing nothing of the data."""

    def target_step(self, y: Array64) -> Array64:
        """What a move by one is at targets ``y`` ``(n,)``: moves are made in these."""
