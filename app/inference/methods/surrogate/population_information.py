"""What the population says of the information at a parameter: from its law, or from rows drawn from it."""

from typing import Final

import numpy as np

from app.inference.core.model import Array32, Array64
from app.inference.methods.surrogate.population import Population
from app.inference.methods.surrogate.state import Setup

_ROWS: Final = 512
"""Drawn at least, where the model's information needs rows."""


def information_of(setup: Setup, population: Population, rows: Array32, theta: Array64) -> Array64:
    """The population's ``(D, D)``, from its law where the model allows, else from a sample of its folded ``rows``."""
    if setup.curvature is not None:
        return setup.curvature.information(population, theta)
    each = rows if setup.design.intercept else rows[:1]  # without an intercept, rows have no part in it
    factors = setup.model.information_factors(each, theta).astype(np.float64).reshape(-1, len(theta))
    return np.asarray(population.count * (factors.T @ factors) / len(each))


def information_of_population(
    rng: np.random.Generator, setup: Setup, population: Population, theta: Array64
) -> Array64:
    """The population's ``(D, D)``, prior included; of rows drawn, where the model needs them."""
    x = population.rows(rng, max(_ROWS, 4 * setup.design.width))
    rows = setup.model.fold(x, np.zeros(len(x))).astype(np.float32)
    return information_of(setup, population, rows, theta) + setup.prior.precision(theta)
