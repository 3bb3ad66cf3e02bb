"""Points at which accountants are compared, and prices of this process."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from typing import Final

from dp_accounting.pld import privacy_loss_distribution

from app.privacy.accounting import ORDERS, compute_cost
from app.privacy.audit.laws import AnswerLaw
from app.privacy.events import AtomicEvent, GaussianEvent, PoissonSampledEvent, SelfComposedEvent
from support.renyi import convert, enclose_divergence, integrate_divergence

RATES: Final = (1.0, 0.3, 0.1, 0.02, 0.005, 0.001)
NOISES: Final = (0.8, 1.5, 4.0, 12.0)
COUNTS: Final = (1, 30, 1000)
DELTAS: Final = (1e-4, 1e-6, 1e-9)
WHOLE: Final = tuple(order for order in ORDERS if order == int(order))
FRACTIONS: Final = tuple(order for order in ORDERS if order != int(order))
SLACK: Final = 1e-9
"""Nats by which another price may exceed the ledger's."""
FRACTION_SLACK: Final = 1e-4
"""The same as a share, for orders that are no integers."""
_INTERVAL: Final = 1e-3


@dataclass(frozen=True, slots=True)
class Point:
    """``count`` events of ``rate`` and ``noise``, priced at ``delta``."""

    rate: float
    noise: float
    count: int
    delta: float

    @property
    def events(self) -> tuple[SelfComposedEvent, ...]:
        """The events as the ledger stores them."""
        gaussian = GaussianEvent(self.noise)
        one: AtomicEvent = gaussian if self.rate == 1 else PoissonSampledEvent(self.rate, gaussian)
        return (SelfComposedEvent(one, self.count),)


def list_points() -> list[Point]:
    """List all points."""
    return [Point(*numbers) for numbers in product(RATES, NOISES, COUNTS, DELTAS)]


def price_by_ledger(point: Point) -> dict[str, float]:
    """Price by the ledger: over all orders, over integers alone, and over the others alone."""
    return {
        "ledger": compute_cost(point.events, point.delta),
        "ledger_whole": compute_cost(point.events, point.delta, WHOLE),
        "ledger_fractions": compute_cost(point.events, point.delta, FRACTIONS),
    }


def price_by_definition(point: Point) -> dict[str, float]:
    """Price from the definition: a lower bound by interval arithmetic, and the quadrature of other orders."""
    whole = [enclose_divergence(point.rate, point.noise, int(order))[0] * point.count for order in WHOLE]
    fractions = [integrate_divergence(point.rate, point.noise, order) * point.count for order in FRACTIONS]
    found = {
        "whole": convert(whole, WHOLE, point.delta),
        "fractions": convert(fractions, FRACTIONS, point.delta),
    }
    law = AnswerLaw(point.noise / math.sqrt(point.count)) if point.rate == 1 else AnswerLaw(point.noise, point.rate)
    return found | ({"exact": law.compute_epsilon(point.delta)} if point.rate == 1 or point.count == 1 else {})


def price_by_losses(point: Point) -> dict[str, float]:
    """Price by the privacy loss distribution, rounded down and up."""
    found = {}
    for name, is_upper in (("losses_down", False), ("losses_up", True)):
        one = privacy_loss_distribution.from_gaussian_mechanism(
            point.noise,
            value_discretization_interval=_INTERVAL,
            sampling_prob=point.rate,
            pessimistic_estimate=is_upper,
            use_connect_dots=is_upper,
        )
        composed = one.self_compose(point.count) if point.count > 1 else one
        found[name] = float(composed.get_epsilon_for_delta(point.delta))
    return found


def find_shortfalls(record: dict[str, float | None]) -> Iterator[str]:
    """Find the prices that exceed the ledger's beyond the slack: a claim that another accountant refutes."""
    ledger = _read(record, "ledger")
    for name in ("exact", "losses_down", "tensorflow_privacy", "tensorflow_privacy_losses", "jax_privacy"):
        price = record.get(name)
        if price is not None and price > ledger + SLACK:
            yield name
    if _read(record, "whole") > _read(record, "ledger_whole") + SLACK:
        yield "whole"
    if _read(record, "fractions") > _read(record, "ledger_fractions") * (1 + FRACTION_SLACK):
        yield "fractions"
    if _read(record, "losses_down") > _read(record, "losses_up") + SLACK:
        yield "losses_up"


def _read(record: dict[str, float | None], name: str) -> float:
    value = record[name]
    assert value is not None, "every record has this price"
    return value
