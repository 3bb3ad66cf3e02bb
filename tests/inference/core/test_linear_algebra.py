"""Mean Gram matrices of weighted factors."""

from typing import Any

import numpy as np
import pytest

from app.inference.core.linear_algebra import compute_mean_gram


@pytest.mark.parametrize(("dtype", "error"), [(np.float64, 1e-12), (np.float32, 1e-5)])
@pytest.mark.parametrize("weights", [2.5, np.array([0.0, 1.0, 0.25, 4.0, 1e-12])], ids=["one", "each"])
def test_a_mean_gram_matrix_is_the_weighted_mean_of_products(weights: Any, dtype: Any, error: float) -> None:
    factors = np.random.default_rng(0).normal(size=(5, 2, 3)).astype(dtype)
    products = [weight * factor.T @ factor for weight, factor in zip(np.resize(weights, 5), factors, strict=True)]
    found = compute_mean_gram(factors, weights)
    np.testing.assert_allclose(found, np.mean(products, axis=0), rtol=error, atol=error)
    np.testing.assert_array_equal(found, found.T)
    assert found.dtype == np.float64
