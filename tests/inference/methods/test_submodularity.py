"""Brute force: the objective of choosing rows is not submodular (thesis, Proposition 21).

``d(S)`` is minus the divergence from the full posterior if the rows S have the weight N/M each (Eq. B.13). It would be
submodular if no row gained more after another one had been added (Definition 20). So a greedy choice has no guarantee.
"""

from collections.abc import Callable, Iterator
from functools import cache
from itertools import combinations

import numpy as np
import pytest

from app.inference.core.model import Array64, Model
from app.inference.core.priors import NormalPrior
from app.inference.models.gaussian import GaussianMean
from app.inference.models.logistic import LogisticRegression
from app.inference.models.robust import make_robust
from app.inference.post.laplace import Laplace, fit_laplace
from support.divergence import compute_divergence

Chosen = frozenset[int]
Objective = Callable[[Chosen], float]
PAIRS, WIDTH = 3, 2
ROUNDING = 1e-7


def make_objective(model: Model, rows: Array64) -> Objective:
    """Make ``d``; posteriors are normal, or Laplace approximations."""
    prior = NormalPrior(np.ones(WIDTH))

    def fit(weights: Array64) -> Laplace:
        return fit_laplace(model, rows, weights, prior, prior.mean)

    full = fit(np.ones(len(rows)))

    @cache
    def d(chosen: Chosen) -> float:
        weights = np.zeros(len(rows))
        weights[list(chosen)] = len(rows) / len(chosen)
        return -compute_divergence(fit(weights), full)

    return d


def list_places(count: int) -> Iterator[tuple[Chosen, int, int]]:
    """List every non-empty S with two rows that it lacks."""
    for size in range(1, count - 1):
        for chosen in map(frozenset, combinations(range(count), size)):
            yield from ((chosen, *pair) for pair in combinations(sorted(set(range(count)) - chosen), 2))


def compute_second_difference(d: Objective, chosen: Chosen, one: int, other: int) -> float:
    """Compute how much less a row gains after another one; negative: it gains more, which Definition 20 forbids."""
    return d(chosen | {one}) - d(chosen) - d(chosen | {one, other}) + d(chosen | {other})


def draw_mirrored(seed: int) -> Array64:
    """Draw pairs of rows x and -x; rows 2 i and 2 i + 1 are a pair."""
    x = np.random.default_rng(seed).standard_normal((PAIRS, WIDTH))
    return np.stack((x, -x), axis=1).reshape(-1, WIDTH)


@pytest.mark.parametrize("seed", range(5))
def test_a_mirrored_row_gains_more_after_its_mirror_image(seed: int) -> None:
    """The instances of the proof; their values follow from Eq. B.14."""
    x = draw_mirrored(seed)
    model = GaussianMean(WIDTH, 1.0)
    d, rows = make_objective(model, model.fold(x, np.zeros(len(x)))), len(x)
    violated = 0
    for chosen, one, other in list_places(rows):
        if all((place ^ 1) in chosen for place in chosen) and other == one ^ 1:
            gain = float(x[one] @ x[one])
            expected = -(rows**2) / ((1 + rows) * (len(chosen) + 1) ** 2) * gain
            assert d(chosen) == pytest.approx(0, abs=1e-12)
            assert compute_second_difference(d, chosen, one, other) == pytest.approx(expected, rel=1e-9)
            violated += 1
    assert violated == PAIRS * (2 ** (PAIRS - 1) - 1)


@pytest.mark.parametrize("family", ["mean", "mean, beta", "logistic", "logistic, beta"])
def test_random_tables_without_mirrored_rows_break_it_too(family: str) -> None:
    """For beta-likelihoods and labels as well, which the proof leaves to the reader."""
    rng = np.random.default_rng(1)
    for _ in range(3):
        x = rng.standard_normal((2 * PAIRS, WIDTH))
        y = (rng.random(len(x)) < 0.5).astype(np.float64)
        model: Model = GaussianMean(WIDTH, 1.0) if family.startswith("mean") else LogisticRegression(WIDTH)
        rows = model.fold(x, y)
        d = make_objective(make_robust(model, 0.2) if "beta" in family else model, rows)
        least = min(compute_second_difference(d, *place) for place in list_places(len(x)))
        assert least < -ROUNDING
