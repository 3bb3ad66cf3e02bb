"""Columns of which matrices know far less than rows seem to tell: levels of labels that are nearly certain, unseen.

A level of a tenth to a half of the rows has no tail, and one of fewer rows may be hidden by noise. Drawn rows have a
normal column then, of which some are near enough for their labels to be open at any parameter. Rows of the level are
all equally far, and where their labels are nearly certain, matrices know many times less of the column than drawn rows
tell. Bounds keep little of such rows, and as much is restored as drawn rows would have lost, which should not be relied
on. Separable labels leave little information in all columns, but what drawn rows tell of them shrinks as well.
"""

from typing import Final, NamedTuple

import numpy as np

from app.inference.core.model import Array64
from app.inference.methods.surrogate.contribution_bounds import information_noise
from app.inference.methods.surrogate.efficiency import concentration
from app.inference.methods.surrogate.matrices import sound
from app.inference.methods.surrogate.state import State
from app.inference.private_zone.queries.tails import NEAR

_DISPUTED, _LOST = 0.5, 0.1
"""What matrices know of a column over what rows tell: from where on restoration may be wrong, and where all of it is.

Noise and amounts leave three quarters and more, or half; levels that did harm a third to a twentieth.
"""
_CLEAR, _LOUD = 0.12, 0.18
"""Noise of a matrix's diagonal up to which, and from where on no more, what matrices know of a column is relied on."""
_PLACES: Final = 5
"""Between the nearest place where a level's rows may be, and a column's bound."""
_TINY = 1e-30


class Places(NamedTuple):
    """Rows ``(n, D)`` of columns' rarer values, all others at their means; ``wrong`` ``(n,)`` is the share of what is
    restored for them that may be wrong, ``nearer`` ``(n, k)`` the shares of the way from the mean that they may be at.
    """

    rows: Array64
    wrong: Array64
    nearer: Array64


def disputed(state: State) -> Places:
    """On either side of each column's mean: at its bound where noise may hide a tail, or else where tails begin."""
    population = state.population
    mean, deviation = population.mean[:-1], np.sqrt(np.maximum(population.covariance.diagonal()[:-1], 0))
    wrong, rows, nearer = _wrong(state), [], []
    for side in (-1.0, 1.0):
        bound = np.where(side > 0, 1.0, population.least)
        near = np.clip(mean + side * NEAR * deviation, population.least, 1.0)
        far = np.where(population.hiding, bound, near)
        rows.append(np.where(np.eye(len(mean), dtype=np.bool_), far, mean))
        least = np.abs(near - mean) / np.maximum(np.abs(far - mean), _TINY)
        nearer.append(np.linspace(least, 1.0, _PLACES, axis=1))
    whole = np.pad(np.vstack(rows), ((0, 0), (0, 1)), constant_values=1.0)
    return Places(whole, np.tile(wrong, 2), np.vstack(nearer))


def _wrong(state: State) -> Array64:
    """``(k,)`` by columns, from what is left to be known of each once all others are."""
    setup, population = state.setup, state.population
    assert setup.curvature is not None
    told = sound(setup.curvature.information(population, state.theta) + setup.prior.precision(state.theta))
    if told is None:
        return np.zeros(len(state.theta) - 1)
    known = np.linalg.inv(told).diagonal() / np.linalg.inv(state.information).diagonal()
    noise = information_noise(setup.schedule, 0, concentration(state))
    clear = np.clip((_LOUD - noise) / (_LOUD - _CLEAR), 0.0, 1.0)
    return np.asarray(clear * np.clip((_DISPUTED - known[:-1]) / (_DISPUTED - _LOST), 0.0, 1.0))
