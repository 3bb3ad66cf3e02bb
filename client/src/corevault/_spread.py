"""Numbers that fill the unit cube evenly, for example rows. They are always the same."""

import numpy as np
from numpy.typing import NDArray


def spread_points(count: int, dimensions: int) -> NDArray[np.float64]:
    """``count`` points in the open unit cube, shape ``(count, dimensions)``.

    They are multiples of powers of a root of ``x^(d + 1) = x + 1``, modulo 1 (the R sequence of M. Roberts, 2018).
    """
    root = 2.0
    for _ in range(64):
        root = (1.0 + root) ** (1.0 / (dimensions + 1.0))
    steps = root ** -np.arange(1.0, dimensions + 1.0)
    points: NDArray[np.float64] = np.mod(0.5 + np.outer(np.arange(1.0, count + 1.0), steps), 1.0)
    return np.clip(points, 1e-9, 1.0 - 1e-9)
