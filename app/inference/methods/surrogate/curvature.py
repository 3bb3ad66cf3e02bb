"""How the information changes between two parameters, for a population of design rows.

``E[v(x't) x x']`` for normal x is the population's second moments but for a change of rank two along its mean and
``S theta`` (Stein's lemma); where columns have tails, it is a mean over rows that have them. Between two modes this
carries a belief along, before any answer corrects it.
"""

from dataclasses import dataclass

import numpy as np

from app.inference.core.model import Array64, Model
from app.inference.methods.surrogate.matrices import metric, sound
from app.inference.methods.surrogate.population import Population

_NODES, _WEIGHTS = np.polynomial.hermite_e.hermegauss(21)
_WEIGHTS = _WEIGHTS / _WEIGHTS.sum()
_LEAST_CHANGE, _MOST_CHANGE = 0.1, 4.0
"""Of the information in any direction, by one step: a population's law says no more of rows far out."""
_MOST_STRETCH = 2.0
"""Times a Newton step that a step may go."""
_EVERY = 16
"""Of sorted predictors, one of so many stands for its neighbours in a mean."""
_TINY = 1e-9


@dataclass(frozen=True, slots=True)
class Curvature:
    """The information of one row with linear predictor t, ``v(t)``, for models with one predictor and nothing else."""

    model: Model
    width: int

    def __call__(self, predictor: Array64) -> Array64:
        """``v`` at each predictor, same shape."""
        values = predictor.ravel()
        rows = np.zeros((len(values), self.model.row_width), dtype=np.float32)
        rows[:, 0], rows[:, self.width - 1] = values, 1
        first = np.zeros(self.model.dimension)
        first[0] = 1
        factors = self.model.information_factors(rows, first)[:, :, self.width - 1].astype(np.float64)
        return np.asarray(np.square(factors).sum(axis=1).reshape(predictor.shape))

    def information(self, population: Population, theta: Array64) -> Array64:
        """``count E[v(x'theta) x x']`` ``(p, p)`` of the population."""
        rows = population.tailed_rows
        if rows is None:
            return self._of_normal(population, theta)
        weighted = rows * self(rows @ theta)[:, None]
        return np.asarray(population.count / len(rows) * (weighted.T @ rows))

    def _of_normal(self, population: Population, theta: Array64) -> Array64:
        mean, covariance = population.mean, population.covariance
        variance = max(float(theta @ covariance @ theta), _TINY)
        along = covariance @ theta / variance
        offsets = np.sqrt(variance) * _NODES
        weights = _WEIGHTS * self(mean @ theta + offsets)
        zeroth, first, second = weights.sum(), weights @ offsets, weights @ offsets**2
        across = zeroth * (covariance - variance * np.outer(along, along) + np.outer(mean, mean))
        mixed = np.outer(mean, along)
        return np.asarray(population.count * (across + first * (mixed + mixed.T) + second * np.outer(along, along)))

    def levels(self, population: Population, theta: Array64, scales: Array64) -> Array64:
        """``E[v(s x'theta)]`` of the population for each s of ``scales``, same shape."""
        rows = population.tailed_rows
        if rows is not None:
            few = np.sort(rows @ theta)[_EVERY // 2 :: _EVERY]
            return np.asarray(self(np.outer(scales, few)).mean(axis=1))
        deviation = np.sqrt(max(float(theta @ population.covariance @ theta), 0.0))
        return np.asarray(self(scales[:, None] * (population.mean @ theta + deviation * _NODES)) @ _WEIGHTS)

    def change(self, population: Population, start: Array64, end: Array64, prior: Array64) -> Array64:
        """The congruence ``(p, p)`` that takes the population's information (``prior`` included) from one to the other.

        Within limits, by direction; where the population's own matrices are none, it changes nothing.
        """
        before = sound(self.information(population, start) + prior)
        after = sound(self.information(population, end) + prior)
        if before is None or after is None:
            return np.eye(len(start))
        within = metric(before)
        values, vectors = np.linalg.eigh(within.whitening @ after @ within.whitening.T)
        stretched = (vectors * np.sqrt(np.clip(values, _LEAST_CHANGE, _MOST_CHANGE))) @ vectors.T
        return np.asarray(within.factor @ stretched @ within.whitening)

    def stretch(self, population: Population, theta: Array64, step: Array64) -> float:
        """How much longer than a Newton ``step`` the way to the mode is, since information falls along it; up to 2.

        The least a with ``int_0^a step' F(theta + s step) step ds = step' F(theta) step``.
        """
        goal = self._along(population, theta, step)
        done, points = 0.0, np.linspace(0.0, _MOST_STRETCH, 9)
        slopes = [self._along(population, theta + s * step, step) for s in points]
        for left, right, a, b in zip(slopes[:-1], slopes[1:], points[:-1], points[1:], strict=True):
            area = 0.5 * (left + right) * (b - a)
            if done + area >= goal:
                return float(max(1.0, a + (b - a) * (goal - done) / max(area, _TINY)))
            done += area
        return _MOST_STRETCH

    def _along(self, population: Population, theta: Array64, step: Array64) -> float:
        """``step' F(theta) step``."""
        rows = population.tailed_rows
        if rows is None:
            return float(step @ self._of_normal(population, theta) @ step)
        return population.count * float(np.mean(self(rows @ theta) * np.square(rows @ step)))
