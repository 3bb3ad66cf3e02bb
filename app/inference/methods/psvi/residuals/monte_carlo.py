"""Residuals of any model: S draws from the Laplace approximation, a minibatch for the data (thesis, Algorithm 1)."""

from dataclasses import dataclass

import numpy as np

from app.inference.core.model import Array64, Model
from app.inference.core.priors import Prior
from app.inference.methods.psvi.residuals import Points, Residual, standardise
from app.inference.methods.public_table import Minibatches
from app.inference.post.gradients import centred_potentials
from app.inference.post.laplace import laplace

_MODE_TOLERANCE = 0.1
"""Of the squared Newton decrement *before* the last step, which squares it again."""


@dataclass(frozen=True, slots=True)
class MonteCarloResidual:
    """``draws`` (S, D) from the posterior, and R at them, centred and divided by S."""

    model: Model
    draws: Array64
    values: Array64
    own: Array64

    def correlation(self, x: Array64, y: Array64) -> Array64:
        """See :class:`app.inference.methods.psvi.residuals.Residual`."""
        potentials = centred_potentials(self.model, self.model.fold(x, y), self.draws)
        return standardise(potentials @ self.values, np.square(potentials).mean(axis=1))

    def moves(self, u: Array64, y: Array64) -> tuple[Array64, Array64 | None]:
        """See :class:`app.inference.methods.psvi.residuals.Residual`."""
        return self.model.point_gradient(u, y, self.draws, self.values)


class MonteCarloResiduals:
    """Holds the last mode, where the search for the next one starts.

    Points start with little weight: a posterior near the prior is drawn to the data's from everywhere, one that is
    confident in a random place is not (measured: 53 against 0.6 % of the prior's KL on 100,000 rows of 50 features).
    """

    starting_share = 0.005

    def __init__(
        self, model: Model, prior: Prior, batches: Minibatches, *, count: int, draws: int, rng: np.random.Generator
    ) -> None:
        """``count`` rows in all, of which ``batches`` holds some at a time."""
        self._model, self._prior, self._batches = model, prior, batches
        self._count, self._draws, self._rng = count, draws, rng
        self._mode = np.zeros(model.dimension)

    def at(self, points: Points) -> Residual:
        """On a fresh minibatch and fresh draws."""
        _, x, y = self._batches.next()
        return self.on(points, x, y)

    def on(self, points: Points, x: Array64, y: Array64) -> Residual:
        """On fresh draws, with ``x, y`` for the data."""
        model, rows = self._model, self._model.fold(points.u, points.y)
        start = self._start(rows, points.weights)
        posterior = laplace(model, rows, points.weights, self._prior, start, tolerance=_MODE_TOLERANCE)
        self._mode = posterior.mean
        draws = posterior.draw(self._rng, self._draws)
        potentials = centred_potentials(model, rows, draws)
        data = model.log_likelihood(model.fold(x, y), draws).sum(axis=0)
        values = self._count / len(x) * (data - data.mean()) - points.weights @ potentials
        values /= len(values)
        return MonteCarloResidual(model, draws, values, potentials @ values)

    def _start(self, rows: Array64, weights: Array64) -> Array64:
        """The last mode, unless zero is more likely: few points can leave a mode that takes long to come back from."""
        starts = np.stack((self._mode, np.zeros_like(self._mode)))
        likelihoods = [self._model.expand(rows, weights, start).value for start in starts]
        values = np.nan_to_num(likelihoods + self._prior.log_density(starts), nan=-np.inf)
        return np.asarray(starts[int(np.argmax(values))])
