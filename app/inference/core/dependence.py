"""Dependence of design columns by declaration: how nearly some columns are a combination of others.

Columns without terms are independent as far as the declaration states. Terms of the same column are not: splines of a
column and Fourier features of it are nearly linear functions of each other. If columns are dependent over all declared
rows, they are in every table.
"""

from typing import Final

import numpy as np
import scipy

from app.inference.core.design import Design
from app.inference.core.designs.encoder import Source
from app.inference.core.model import Array64

LEAST_EIGENVALUE: Final = 0.003
"""Columns are dependent below this least eigenvalue of their correlations."""
_FEWEST_ROWS: Final = 512
_TINY: Final = 1e-12


def compute_least_eigenvalue(design: Design) -> float:
    """Compute the least eigenvalue of the columns' correlations over evenly spread declared rows.

    It is 1 without terms. Constant columns are left out. The rows are a Halton sequence, so nothing is random.
    """
    if len(_find_sources(design)) == len(design.encoders) and all(column.term is None for column in design.columns):
        return 1.0
    return _find_least(spread_rows(design).T)


def spread_rows(design: Design) -> Array64:
    """Spread rows ``(n, k)`` evenly over the declared ranges, without the intercept.

    They are a Halton sequence, so nothing is random.
    """
    sources = _find_sources(design)
    count = max(_FEWEST_ROWS, 8 * design.width)
    places = scipy.stats.qmc.Halton(len(sources), scramble=False).random(count + 1)[1:]
    coordinates = dict(
        zip(sources, (source.spread(u) for source, u in zip(sources.values(), places.T, strict=True)), strict=True)
    )
    blocks = [each.transform([coordinates[source.column.name] for source in each.sources]) for each in design.encoders]
    return np.concatenate(blocks).T


def _find_sources(design: Design) -> dict[str, Source]:
    return {source.column.name: source for encoder in design.encoders for source in encoder.sources}


def is_dependent(design: Design) -> bool:
    """Whether some columns are nearly a combination of others in every declared table."""
    return compute_least_eigenvalue(design) < LEAST_EIGENVALUE


def _find_least(columns: Array64) -> float:
    centred = columns - columns.mean(axis=1, keepdims=True)
    deviations = np.sqrt(np.square(centred).mean(axis=1))
    varying = centred[deviations > _TINY] / deviations[deviations > _TINY, None]
    return float(np.linalg.eigvalsh(varying @ varying.T / columns.shape[1])[0]) if len(varying) else 1.0
