"""An independent ledger: a list of jobs, priced by dp-accounting and admitted in floats."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache

import dp_accounting
from dp_accounting import rdp

from app.ledger import Charge
from app.privacy.accounting import ORDERS
from app.privacy.events import GaussianEvent, PoissonSampledEvent, PrivacyEvent, SelfComposedEvent

KNIFE_EDGE = 1e-7
"""Decisions this close to a bound may fall either way: the ledger rounds up, the model does not."""


@dataclass
class NaiveJob:
    dataset_id: str
    charge: Charge
    tranche: int
    state: str = "reserved"


@dataclass(frozen=True)
class NaiveFilter:
    """The paper's filter: order a with weight w may spend eps - log(1 - 1/a) + log(w delta a)/(a - 1)."""

    epsilon: float
    delta: float
    orders: tuple[float, ...]
    weights: tuple[float, ...]

    def slack(self, charges: Iterable[Charge]) -> float:
        spent = divergences(tuple(charges), self.orders)
        return max(
            self.epsilon - math.log(1 - 1 / a) + math.log(w * self.delta * a) / (a - 1) - used
            for a, w, used in zip(self.orders, self.weights, spent, strict=True)
        )


@dataclass
class NaiveLedger:
    limit: float
    delta: float
    tranches: list[NaiveFilter]
    cap: NaiveFilter
    jobs: dict[str, NaiveJob] = field(default_factory=dict)
    refused: int = 0
    entries: int = 2

    def composed(self, states: set[str], extra: Sequence[Charge] = ()) -> float:
        """The library's epsilon of all jobs in ``states``."""
        return epsilon([*self.charges(states), *extra], self.delta)

    def charges(self, states: set[str], **fields: object) -> list[Charge]:
        def wanted(job: NaiveJob) -> bool:
            return job.state in states and all(getattr(job, name) == value for name, value in fields.items())

        return [job.charge for job in self.jobs.values() if wanted(job)]

    def slacks(self, dataset_id: str, charge: Charge) -> tuple[float, list[float]]:
        """Slack of the limits that every job must meet, and of each tranche."""
        live = {"reserved", "opened", "settled"}
        total = NaiveFilter(self.limit, self.delta, ORDERS, (1.0,) * len(ORDERS))
        common = [total.slack([*self.charges(live), charge])]
        if dataset_id == "ds_b":
            common.append(self.cap.slack([*self.charges(live, dataset_id="ds_b"), charge]))
        each = [
            tranche.slack([*self.charges(live, tranche=index), charge]) for index, tranche in enumerate(self.tranches)
        ]
        return min(common), each


def divergences(charges: tuple[Charge, ...], orders: tuple[float, ...]) -> list[float]:
    vectors = [_divergences(charge.events, orders) for charge in charges]
    return [math.fsum(column) for column in zip(*vectors, strict=True)] or [0.0] * len(orders)


def epsilon(charges: Sequence[Charge], delta: float) -> float:
    if not charges:
        return 0.0
    spent = divergences(tuple(charges), ORDERS)
    return max(0.0, float(rdp.compute_epsilon(list(ORDERS), spent, delta)[0]))


@lru_cache
def _divergences(events: tuple[PrivacyEvent, ...], orders: tuple[float, ...]) -> tuple[float, ...]:
    total = [0.0] * len(orders)
    for event in events:
        atomic, count = (event.event, event.count) if isinstance(event, SelfComposedEvent) else (event, 1)
        assert isinstance(atomic, GaussianEvent | PoissonSampledEvent)
        full = isinstance(atomic, GaussianEvent)
        priced = [order for order in orders if full or order <= 1024]
        accountant = rdp.RdpAccountant(priced, dp_accounting.NeighboringRelation.REPLACE_SPECIAL)
        accountant.compose(library_event(atomic), count)
        known = dict(zip(priced, map(float, accountant.rdp), strict=True))
        total = [sum_ + known.get(order, math.inf) for sum_, order in zip(total, orders, strict=True)]
    return tuple(total)


def library_event(event: GaussianEvent | PoissonSampledEvent) -> dp_accounting.DpEvent:
    if isinstance(event, GaussianEvent):
        return dp_accounting.GaussianDpEvent(event.noise_multiplier)
    return dp_accounting.PoissonSampledDpEvent(
        event.sampling_rate, dp_accounting.GaussianDpEvent(event.event.noise_multiplier)
    )
