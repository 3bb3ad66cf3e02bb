"""The bound of Proposition 1 against the library and the best small coresets."""

from itertools import combinations

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.stats import chi2

from benchmarks.lower_bound import chi_squared_quantile, compute_subset_lower_bound, log_chi_squared


@pytest.mark.parametrize(("x", "degrees"), [(3.0, 5), (1e-3, 1), (150.0, 200), (1e5, 100_000)])
def test_the_series_equals_the_distribution_function(x: float, degrees: int) -> None:
    np.testing.assert_allclose(log_chi_squared(np.log(x), degrees), chi2.logcdf(x, degrees), rtol=1e-9)


@pytest.mark.parametrize("degrees", [1, 7, 200])
@pytest.mark.parametrize("probability", [1e-12, 0.01, 0.5, 0.99])
def test_quantiles_equal_those_of_the_library(probability: float, degrees: int) -> None:
    quantile = chi_squared_quantile(float(np.log(probability)), degrees)
    np.testing.assert_allclose(quantile, chi2.ppf(probability, degrees), rtol=1e-8)


def test_quantiles_exist_for_probabilities_below_a_double() -> None:
    """At tiny x, ``F(x)`` is ``(x/2)^a / Gamma(a + 1)``: for two degrees of freedom, x/2."""
    np.testing.assert_allclose(np.log(chi_squared_quantile(-500.0, 2) / 2), -500, rtol=1e-9)


def test_the_bound_equals_the_proposition_by_the_library() -> None:
    """Twenty rows have 1,140 subsets of three."""
    exact = 0.5 * (20 - 3) / (1 + 20) * chi2.ppf(0.5 / 1140, 10 - 3)
    np.testing.assert_allclose(compute_subset_lower_bound(20, 3, 10, 0.5), exact, rtol=1e-9)


@pytest.mark.long
def test_subsets_of_small_tables_respect_the_bound() -> None:
    """The best pair of ten rows beats the bound in few tables.

    Their share is at most delta.
    """
    n, size, d, delta = 10, 2, 6, 0.2
    bound, below = compute_subset_lower_bound(n, size, d, delta), 0
    assert bound > 0
    for at in range(20):
        rows = np.random.default_rng(at).standard_normal((n, d))
        below += min(_best(rows, subset) for subset in combinations(range(n), size)) < bound
    assert below <= 20 * delta


def _best(rows: object, subset: tuple[int, ...]) -> float:
    values = np.asarray(rows)
    n, d = values.shape
    mean = values.sum(axis=0) / (1 + n)

    def kl(weights: object) -> float:
        w = np.asarray(weights)
        ratio = (1 + n) / (1 + w.sum())
        shift = w @ values[list(subset)] / (1 + w.sum()) - mean
        return float(0.5 * (d * (ratio - 1 - np.log(ratio)) + (1 + n) * shift @ shift))

    return float(minimize(kl, np.full(len(subset), n / 2), bounds=[(0, None)] * len(subset)).fun)


def test_the_bound_falls_with_size_and_is_zero_at_the_dimension() -> None:
    assert compute_subset_lower_bound(1000, 200, 200, 0.5) == 0
    bounds = [compute_subset_lower_bound(1000, size, 500, 0.5) for size in (0, 1, 5, 12, 30, 100)]
    assert np.all(np.diff(bounds) < 0)
    np.testing.assert_allclose(bounds[0], 0.5 * 1000 / 1001 * chi2.median(500), rtol=1e-9)


@pytest.mark.parametrize("arguments", [(10, 11, 5, 0.5), (10, 1, 0, 0.5), (10, 1, 5, 1.0), (10, 1, 5, 0.0)])
def test_invalid_arguments_are_refused(arguments: tuple[int, int, int, float]) -> None:
    with pytest.raises(ValueError, match="needs"):
        compute_subset_lower_bound(*arguments)
