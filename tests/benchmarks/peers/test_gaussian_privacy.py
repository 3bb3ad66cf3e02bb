"""The price of Gaussian mechanisms against Corevault's accountant and against integration."""

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import norm

from app.privacy.calibration import calibrate
from app.privacy.events import GaussianEvent, SelfComposedEvent
from benchmarks.peers.gaussian_privacy import compute_delta, compute_mu


@pytest.mark.parametrize("epsilon", [0.2, 1.0, 3.0])
@pytest.mark.parametrize("steps", [1, 40])
def test_noise_is_at_most_that_of_the_accountant(epsilon: float, steps: int) -> None:
    """The exact price is lower, by a few per cent: peers get more for the same epsilon, never less."""
    plan = calibrate(lambda noise: (SelfComposedEvent(GaussianEvent(noise), steps),), epsilon, 3e-5)
    noise = np.sqrt(steps) / compute_mu(epsilon, 3e-5)
    assert 0.85 * plan < noise < plan


@pytest.mark.parametrize(("mu", "epsilon"), [(0.1, 0.2), (1.0, 0.5), (0.7, 3.0)])
def test_delta_is_the_hockey_stick_divergence(mu: float, epsilon: float) -> None:
    def excess(x: float) -> float:
        return max(0.0, float(norm.pdf(x, mu) - np.exp(epsilon) * norm.pdf(x)))

    start = epsilon / mu + mu / 2
    integral, _ = quad(excess, start, start + 15, epsabs=1e-15)
    assert compute_delta(mu, epsilon) == pytest.approx(integral, rel=1e-5)


def test_mu_costs_exactly_the_target() -> None:
    assert compute_delta(compute_mu(0.2, 1e-5), 0.2) == pytest.approx(1e-5, rel=1e-6)


def test_a_target_out_of_reach_is_refused() -> None:
    with pytest.raises(ValueError, match="no noise"):
        compute_mu(1e7, 1e-9)
