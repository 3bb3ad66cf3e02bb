"""Weighting distributions of Hilbert coresets: draws from normal guesses of the posterior."""

from typing import Final

import numpy as np

from app.inference.core.model import Array64, Expansion, Model
from app.inference.core.problems import Problem
from app.inference.methods.public_table import PublicTable
from app.inference.post.laplace import Laplace, fit_laplace, solve_transposed

KINDS: Final = ("optimal", "realistic", "laplace")
CORRUPTION: Final = 0.75
SUBSAMPLE: Final = 1000


def draw_weighting(kind: str, problem: Problem, table: PublicTable, rng: np.random.Generator, *, count: int) -> Array64:
    """Draw ``count`` parameters, ``(count, D)``.

    - ``optimal``: the Laplace approximation of the full posterior (exact if that is normal).
    - ``realistic``: mean and covariance at a random point between the prior and ``optimal``. The mean's length and the
      covariance's scale have a relative noise of 75 % (thesis, section 4.4).
    - ``laplace``: the Laplace approximation on at most 1,000 rows, chosen uniformly and weighted to the data's total.
    """
    if kind == "laplace":
        return _draw_independently(_approximate_subsample(problem, table, rng), rng, count)
    optimal = _approximate_table(problem, table)
    return (
        _draw_independently(optimal, rng, count) if kind == "optimal" else _draw_corrupted(problem, optimal, rng, count)
    )


def _draw_independently(posterior: Laplace, rng: np.random.Generator, count: int) -> Array64:
    """Draw without antithetic pairs, which add no information for nearly linear log-likelihoods."""
    noise = rng.standard_normal((len(posterior.mean), count))
    return np.asarray(posterior.mean + solve_transposed(posterior.factor, noise).T)


def _approximate_subsample(problem: Problem, table: PublicTable, rng: np.random.Generator) -> Laplace:
    size = min(SUBSAMPLE, table.count)
    x, y = table.read(rng.choice(table.count, size=size, replace=False) if size else np.zeros(0, dtype=np.int64))
    rows = problem.model.fold(x.astype(np.float64), y)
    weights = np.full(size, table.count / max(size, 1))
    return fit_laplace(problem.model, rows, weights, problem.prior, problem.prior.mean)


def _approximate_table(problem: Problem, table: PublicTable) -> Laplace:
    model, no_rows = problem.model, np.zeros((0, problem.model.row_width))
    return fit_laplace(_TableLikelihood(model, table), no_rows, np.zeros(0), problem.prior, problem.prior.mean)


class _TableLikelihood:
    """The likelihood of all rows of a table, expanded chunk by chunk."""

    def __init__(self, model: Model, table: PublicTable) -> None:
        self._model, self._table = model, table

    def expand(self, rows: Array64, weights: Array64, theta: Array64) -> Expansion:
        """Expand the log-likelihood of ``rows`` and of the table to second order at ``theta``."""
        total = self._model.expand(rows, weights, theta)
        for x, y in self._table.chunks():
            folded = self._model.fold(x.astype(np.float64), y)
            total += self._model.expand(folded, np.ones(len(x)), theta)
        return total


def _draw_corrupted(problem: Problem, optimal: Laplace, rng: np.random.Generator, count: int) -> Array64:
    """Draw from a corrupted guess.

    It is normal, with mean ``m + 0.75 |m| z / sqrt(D)`` and covariance ``(a V + (1 - a) V_0) e^{1.5 z}``, where
    ``m = a mu + (1 - a) mu_0``.
    """
    d, share = len(optimal.mean), rng.random()
    precision = optimal.factor @ optimal.factor.T
    centre = problem.prior.mean
    prior = problem.prior.precision(centre)
    covariance = share * np.linalg.inv(precision) + (1 - share) * np.linalg.inv(prior)
    mean = share * optimal.mean + (1 - share) * centre
    mean = mean + CORRUPTION * np.linalg.norm(mean) * rng.standard_normal(d) / np.sqrt(d)
    scale = np.exp(CORRUPTION * rng.standard_normal())
    return np.asarray(mean + scale * rng.standard_normal((count, d)) @ np.linalg.cholesky(covariance).T)
