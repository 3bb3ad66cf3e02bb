"""How long drawn rows are in the metric that is asked in, where beliefs about rows and about the information part.

In the population's own metric rows are as long as they are on average, whatever columns' scales are off by. But along
a level whose labels are nearly certain its information is a mean over the few rows whose labels are not, and off by
any factor; there the belief is what matrices know, and how long the level's rows are in its metric follows. Where a
query is asked in a wider one, by how much is known exactly.
"""

from typing import Final

import numpy as np

from app.inference.core.model import Array32, Array64, Model
from app.inference.methods.surrogate.directions import weights_of
from app.inference.methods.surrogate.matrices import Metric, symmetric

_LEAST, _MOST = 0.02, 50.0
"""Times that the belief along a direction is believed to be the population's information at all."""
_SHORT: Final = 1e-6
"""A bound that rows exceed, so that their weights say by how much; those that do not count as that long."""
_TINY = float(np.finfo(np.float64).tiny)


def elongation(directions: Array64, believed: Array64) -> Array64:
    """``(n,)``: how much longer rows are than ``directions`` ``(n, D)``, those in the own metric.

    ``believed`` ``(D, D)`` is the belief in it: the identity where they agree. A geometric mean over its eigenvalues,
    each by its part of the row. The exact square ``d' B^-1 d`` would be ruled by directions of hardly any information,
    in which rows are only by what noise makes of their moments: one-hot levels would seem twice as long as they are.
    """
    values, vectors = np.linalg.eigh(symmetric(believed))
    parts = np.square(directions @ vectors) / np.maximum(np.vecdot(directions, directions), _TINY)[:, None]
    return np.asarray(np.exp(-0.5 * (parts @ np.log(np.clip(values, _LEAST, _MOST)))))


def longest(model: Model, rows: Array32, theta: Array64, within: Metric) -> Array64:
    """``(n,)``: how long scores of ``rows`` may be in a metric, whatever their targets are."""
    whole = model.scores(rows, theta) @ within.whitening.T.astype(np.float32)
    return np.asarray(_SHORT / weights_of(model.bounded_scores(rows, theta, within.whitening, _SHORT), whole))


def believed_lengths(model: Model, rows: Array32, theta: Array64, own: Metric, believed: Metric) -> Array64:
    """``(n,)``: :func:`longest` in the metric ``believed``, of a population's drawn rows, whose metric is ``own``."""
    lengths = longest(model, rows, theta, own)
    directions, information = model.features(rows).astype(np.float64), believed.factor @ believed.factor.T
    return lengths * elongation(directions @ own.whitening.T, own.whitening @ information @ own.whitening.T)


def shortening(directions: Array64, believed: Metric, asked: Metric) -> Array64:
    """``(n,)``: how long rows of ``directions`` ``(n, D)`` are in the metric ``asked`` beside that of the belief."""
    before, after = (np.linalg.norm(directions @ each.whitening.T, axis=1) for each in (believed, asked))
    return np.asarray(np.maximum(after, _TINY) / np.maximum(before, _TINY))
