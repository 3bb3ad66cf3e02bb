"""Choice of a problem's residuals: exact if a formula is known, else by Monte Carlo."""

import numpy as np

from app.inference.core.priors import NormalPrior
from app.inference.core.problems import Problem
from app.inference.methods.psvi.residuals import Residuals
from app.inference.methods.psvi.residuals.gaussian_mean import GaussianMeanResiduals
from app.inference.methods.psvi.residuals.linear_regression import LinearResiduals
from app.inference.methods.psvi.residuals.monte_carlo import MonteCarloResiduals
from app.inference.methods.public_table import Minibatches, PublicTable
from app.inference.models.gaussian import CorrelatedMean, GaussianMean
from app.inference.models.linear import LinearRegression, LinearRegressionOfUnknownNoise


def make_residuals(
    problem: Problem, table: PublicTable, rng: np.random.Generator, *, draws: int, minibatch: int
) -> Residuals:
    """Make the residuals of ``problem``; ``draws`` and ``minibatch`` are for Monte Carlo only."""
    model, prior = problem.model, problem.prior
    if isinstance(prior, NormalPrior):
        if isinstance(model, GaussianMean) and not isinstance(model, CorrelatedMean):
            return GaussianMeanResiduals(model.noise, prior, table)
        if isinstance(model, LinearRegression) and not isinstance(model, LinearRegressionOfUnknownNoise):
            return LinearResiduals(model, prior, table)
    batches = Minibatches(table, minibatch, rng)
    return MonteCarloResiduals(model, prior, batches, count=table.count, draws=draws, rng=rng)
