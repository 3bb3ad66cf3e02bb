"""The contract of every accountant: a new one inherits the suite and implements ``cost``."""

import itertools
import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

import dp_accounting
import pytest
from dp_accounting import rdp

from app.privacy.accounting import compute_cost
from app.privacy.events import (
    AtomicEvent,
    GaussianEvent,
    NonPrivateEvent,
    PoissonSampledEvent,
    PrivacyEvent,
    SelfComposedEvent,
    UnknownEvent,
    flatten,
)

RATES = (1.0, 0.5, 0.1, 0.02, 0.002)
NOISES = (0.6, 30.0)
DELTAS = (1e-4, 1e-6, 1e-9)


def _event(rate: float = 0.1, noise: float = 1.5, count: int = 20) -> SelfComposedEvent:
    return SelfComposedEvent(PoissonSampledEvent(rate, GaussianEvent(noise)), count)


def _library(event: AtomicEvent) -> dp_accounting.DpEvent:
    if isinstance(event, GaussianEvent):
        return dp_accounting.GaussianDpEvent(event.noise_multiplier)
    return dp_accounting.PoissonSampledDpEvent(event.sampling_rate, _library(event.event))


def _library_epsilons(events: Sequence[PrivacyEvent], deltas: Sequence[float]) -> list[float]:
    accountant = rdp.RdpAccountant(neighboring_relation=dp_accounting.NeighboringRelation.REPLACE_SPECIAL)
    for event, count in flatten(events):
        accountant.compose(_library(event), count)
    return [float(accountant.get_epsilon(delta)) for delta in deltas]


class AccountantConformance(ABC):
    """Laws of a cost. If one fails, a promise about charges is broken (W8, W9)."""

    @abstractmethod
    def cost(self, events: Sequence[PrivacyEvent], delta: float) -> float:
        """Compute the epsilon of ``events`` at ``delta``."""

    @pytest.mark.parametrize("delta", DELTAS)
    def test_no_events_cost_zero(self, delta: float) -> None:
        assert self.cost((), delta) == 0.0

    @pytest.mark.parametrize(("rate", "noise"), list(itertools.product(RATES, NOISES)))
    def test_cost_of_an_event_is_positive_and_finite(self, rate: float, noise: float) -> None:
        assert 0 < self.cost((_event(rate, noise),), 1e-6) < math.inf

    @pytest.mark.parametrize("rate", RATES)
    def test_more_repetitions_never_cost_less(self, rate: float) -> None:
        costs = [self.cost((_event(rate, count=count),), 1e-6) for count in (1, 2, 3, 10, 11, 500, 10**5, 2**40)]
        assert costs == sorted(costs)
        assert costs[0] < costs[-2]

    @pytest.mark.parametrize("noise", NOISES)
    def test_a_higher_rate_never_costs_less(self, noise: float) -> None:
        rates = (1e-12, 0.002, 0.1, 0.5, 1 - 1e-9, 1.0)
        costs = [self.cost((_event(rate, noise),), 1e-6) for rate in rates]
        assert costs == sorted(costs)

    @pytest.mark.parametrize("rate", RATES)
    def test_more_noise_never_costs_more(self, rate: float) -> None:
        costs = [
            self.cost((_event(rate, noise),), 1e-6) for noise in (1e-9, 0.05, 0.6, 1.0, 3.0, 30.0, 1e3, 1e9, 1e300)
        ]
        assert costs == sorted(costs, reverse=True)

    def test_a_smaller_delta_never_costs_less(self) -> None:
        costs = [self.cost((_event(),), delta) for delta in DELTAS]
        assert costs == sorted(costs)

    def test_one_more_event_never_costs_less_and_order_does_not_matter(self) -> None:
        left, right = _event(0.02, 0.9, 50), SelfComposedEvent(GaussianEvent(12.0), 3)
        both = self.cost((left, right), 1e-6)
        assert both == self.cost((right, left), 1e-6)
        assert both >= max(self.cost((left,), 1e-6), self.cost((right,), 1e-6))

    def test_cost_of_a_split_run_equals_that_of_the_whole(self) -> None:
        whole = self.cost((_event(count=100),), 1e-6)
        parts = self.cost((_event(count=37), _event(count=63)), 1e-6)
        assert whole <= parts == pytest.approx(whole, rel=1e-9)

    def test_sampling_rate_of_one_costs_as_much_as_no_sampling(self) -> None:
        sampled = self.cost((PoissonSampledEvent(1.0, GaussianEvent(2.0)),), 1e-6)
        assert sampled == self.cost((GaussianEvent(2.0),), 1e-6)

    @pytest.mark.parametrize("stranger", [NonPrivateEvent(), object(), None])
    def test_event_without_a_price_is_refused_alone_and_among_others(self, stranger: Any) -> None:
        for events in ((stranger,), (_event(), stranger), (stranger, _event())):
            with pytest.raises(UnknownEvent):
                self.cost(events, 1e-6)

    @pytest.mark.parametrize("delta", [0.0, 1.0, -1.0, math.nan, math.inf])
    def test_invalid_delta_is_refused(self, delta: float) -> None:
        with pytest.raises(ValueError, match="delta"):
            self.cost((_event(),), delta)

    @pytest.mark.parametrize(
        "events",
        [
            (GaussianEvent(1.0),),
            (GaussianEvent(40.0), _event(0.1, 1.1, 10)),
            (_event(0.002, 5.0, 500),),
            (_event(0.02, 5.0, 500),),
            (_event(0.3, 0.8, 5), _event(0.002, 0.7, 1000), GaussianEvent(9.0)),
        ],
        ids=["gaussian", "mixed", "rare", "usual", "three"],
    )
    def test_the_cost_is_never_below_the_librarys(self, events: Sequence[PrivacyEvent]) -> None:
        """W8: every charge is at least the cost of dp-accounting's moments accountant with its default orders."""
        library_epsilons = _library_epsilons(events, DELTAS)
        assert all(self.cost(events, delta) >= epsilon for delta, epsilon in zip(DELTAS, library_epsilons, strict=True))


class TestRenyiAccountant(AccountantConformance):
    """The accountant of the ledger, of calibration and of quotes."""

    def cost(self, events: Sequence[PrivacyEvent], delta: float) -> float:
        return compute_cost(events, delta)
