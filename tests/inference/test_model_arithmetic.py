"""The models' special functions, against SciPy's."""

import numpy as np
import pytest
from scipy.special import log_ndtr
from scipy.stats import poisson

from app.inference.models.normal import log_cdf
from app.inference.models.poisson_law import compute_clipped_mean


def test_the_log_normal_distribution_is_exact_to_single_precision() -> None:
    values = np.linspace(-12, 12, 100_001, dtype=np.float32)
    exact = log_ndtr(values.astype(np.float64))
    np.testing.assert_allclose(log_cdf(values.copy()), exact, rtol=4e-7, atol=1.2e-7)
    np.testing.assert_array_equal(log_cdf(np.array([-50, 50], np.float32)), log_cdf(np.array([-12, 12], np.float32)))


@pytest.mark.parametrize("rate", [1e-3, 0.3, 2.0, 7.99, 8.0, 9.7, 40.0, 3e3, 1e6])
def test_the_mean_of_a_clipped_poisson_residual_is_exact(rate: float) -> None:
    spread = np.sqrt(rate)
    cuts = spread * np.array([0.01, 0.2, 0.7, 1.0, 1.9, 4.0, 9.0, 1e4])
    values = np.arange(max(0, int(rate - 15 * spread - 40)), int(rate + 15 * spread + 60))
    residuals = np.clip(values - rate, -cuts[:, None], cuts[:, None])
    exact = residuals @ poisson.pmf(values, rate)
    error = np.abs(compute_clipped_mean(np.full_like(cuts, rate), cuts) - exact)
    assert np.all(error < 4e-6 * np.minimum(cuts, spread))
