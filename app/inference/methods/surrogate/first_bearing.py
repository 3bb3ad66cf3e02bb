"""Whether a search sets out by a bearing: rows that seem isotropic, and a query that pays."""

import numpy as np

from app.inference.methods.surrogate.bearing import Bearing
from app.inference.methods.surrogate.bearing_rounds import TESTS
from app.inference.methods.surrogate.isotropy import Isotropic, isotropic
from app.inference.methods.surrogate.moments import Moments
from app.inference.methods.surrogate.population import Lengths, Population
from app.inference.methods.surrogate.single_index import BinaryResponse
from app.inference.methods.surrogate.state import Setup

LEAST_NOISE = 15.0
"""Nats that one score of the whole budget would lose: below, believing in isotropic rows costs more than it saves."""
LEAST_COLUMNS = 8
STEEPEST, MOST_PULLED = 3.0, 1.0
"""Nats that a prior may move slopes of that length, and be made up for; a narrower one leaves no bearing."""


def first_bearing(setup: Setup, population: Population, found: Moments, lengths: Lengths | None) -> Bearing | None:
    """Before any score; None where rows do not seem isotropic."""
    if lengths is None or not conceivable(setup):
        return None
    rows = isotropic(population, found, lengths, setup.schedule.slots)
    width = setup.design.width
    if rows is None or _pulled(setup, rows) > MOST_PULLED:
        return None
    return Bearing(rows, BinaryResponse(setup.model, width), np.zeros(width))


def conceivable(setup: Setup) -> bool:
    """Whether declared facts leave room for isotropic rows, and noise is such that it pays to believe in them."""
    known = setup.known
    numbers = not np.any(known.indicators | known.signs) and len(known.group) >= LEAST_COLUMNS
    labels = setup.schedule.labels and setup.curvature is not None
    noisy = setup.schedule.crowded and setup.schedule.declared_noise >= LEAST_NOISE
    tested = setup.schedule.rounds > max(TESTS)
    return bool(labels and numbers and noisy and tested and setup.rows_per_unit == 1)


def _pulled(setup: Setup, rows: Isotropic) -> float:
    """Nats, at most, by which the prior moves the mode of isotropic rows whose labels have uncertain slopes."""
    assert setup.curvature is not None
    narrowest = float(np.max(setup.prior.precision(np.zeros(setup.design.width)).diagonal()[:-1] / rows.scale**2))
    known = rows.count * float(setup.curvature(np.array([STEEPEST]))[0])
    return 0.5 * (narrowest * STEEPEST) ** 2 / known
