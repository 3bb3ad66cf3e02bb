"""The choice of a peer's settings: the best of its grid, by looking at the private table.

The choice costs no privacy here, which is a present to the peer. It uses development seeds, so the noise of the report
is fresh.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from itertools import product
from typing import Final

import numpy as np

from benchmarks.peers.problem import Belief, Problem, Settings

Release = Callable[[Problem, float, Settings, np.random.Generator], Belief]
DEVELOPMENT_SEEDS: Final = (1, 2, 3)


def list_settings(grid: Mapping[str, Sequence[float]]) -> list[dict[str, float]]:
    """List all combinations of a grid."""
    return [dict(zip(grid, values, strict=True)) for values in product(*grid.values())]


def choose_settings(
    candidates: Sequence[Settings], measure: Callable[[Settings, int], float], seeds: Sequence[int] = DEVELOPMENT_SEEDS
) -> Settings:
    """Choose the settings with the least median of ``measure(settings, seed)``.

    The first seed leaves the better third, so that the others are not spent on settings that cannot win.

    Raises:
        ValueError: no settings give a finite value.
    """
    first = sorted(
        (value, place) for place, each in enumerate(candidates) if math.isfinite(value := measure(each, seeds[0]))
    )
    if not first:
        raise ValueError("no settings of the grid give a release")
    kept = first[: max(1, len(candidates) // 3)]
    medians = [
        (float(np.median([value, *(measure(candidates[place], seed) for seed in seeds[1:])])), place)
        for value, place in kept
    ]
    return candidates[min(medians)[1]]
