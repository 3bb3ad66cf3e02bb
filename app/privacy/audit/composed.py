"""The trade-off function of composed events, from their privacy loss distribution.

Full-batch events compose to one Gaussian, whose ``mu^2`` is the sum of ``1 / s^2``. Sampled events have no closed form.
dp-accounting discretises their privacy loss, and rounds it up (Doroshenko et al., *Connect the dots*, 2022). Its delta
at each epsilon gives a supporting line of the trade-off function: ``power(a) <= e^eps a + delta``.
"""

import math
from collections.abc import Sequence

import numpy as np
from dp_accounting.pld import privacy_loss_distribution

from app.privacy.events import AtomicEvent, PrivacyEvent, flatten

_INTERVAL = 1e-3
"""Width of the grid of privacy losses, in nats."""


def compute_separation(events: Sequence[PrivacyEvent]) -> float:
    """Compute mu of composed full-batch events.

    Raises:
        ValueError: for a sampled event.
    """
    total = 0.0
    for event, count in flatten(events):
        if event.sampling_rate < 1:
            raise ValueError("only full-batch events compose to a Gaussian")
        total += count / event.noise_multiplier**2
    return math.sqrt(total)


class ComposedTradeOff:
    """The trade-off function of composed events, rounded towards less privacy."""

    def __init__(self, events: Sequence[PrivacyEvent]) -> None:
        """Compose ``events``; it takes time for each distinct event."""
        parts = [_make_distribution(event).self_compose(count) for event, count in flatten(events)]
        self._loss = parts[0]
        for part in parts[1:]:
            self._loss = self._loss.compose(part)

    def compute_epsilon(self, delta: float) -> float:
        """Compute the least epsilon at ``delta``."""
        return float(self._loss.get_epsilon_for_delta(delta))

    def compute_delta(self, epsilon: float) -> float:
        """Compute the least delta at ``epsilon``."""
        return float(self._loss.get_delta_for_epsilon(epsilon))

    def bound_power(self, false_positives: float) -> float:
        """Bound the rate of true positives at this rate of false positives.

        Only lines with a slope of at least 1 are used, and their mirror images (the test of the complement).
        """
        epsilons = np.linspace(0.0, 30.0, 601)
        deltas = np.array([self.compute_delta(float(epsilon)) for epsilon in epsilons])
        odds = np.exp(epsilons)
        rising = odds * false_positives + deltas
        falling = 1 - (1 - false_positives - deltas) / odds
        return float(min(1.0, rising.min(), falling.min()))


def _make_distribution(event: AtomicEvent) -> privacy_loss_distribution.PrivacyLossDistribution:
    return privacy_loss_distribution.from_gaussian_mechanism(
        event.noise_multiplier, value_discretization_interval=_INTERVAL, sampling_prob=event.sampling_rate
    )
