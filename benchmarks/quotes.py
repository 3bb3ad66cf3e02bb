"""Processor time of a price: ``make bench``. Measures the pure part of a quote, without HTTP and database.

No case is in a cache. A *mechanism* is priced directly, and a *target* is calibrated and then priced. Each structure of
a request also needs one *dry run*.
"""

import statistics
import time
from collections.abc import Callable
from functools import partial

from rich.console import Console
from rich.table import Table

from app.inference.core.plan import Mechanism, PlanRequest
from app.inference.dry_run import carry_out
from app.inference.registry import DEFAULT, find_method
from app.privacy.accounting import compute_cost
from app.privacy.calibration import calibrate
from app.privacy.events import PrivacyEvent
from benchmarks.sources import make_facts, make_spec

FEATURES, SLOTS, DELTA, CASES = 20, 20_000, 1e-6, 15
SURROGATE, ITERATIVE = DEFAULT, "dp-psvi"


def plan(request: PlanRequest) -> tuple[PrivacyEvent, ...]:
    """The events of a request on a generated declaration."""
    return find_method(request.method).plan(request, make_facts(FEATURES, SLOTS)).events


def price_mechanism(name: str, case: int) -> None:
    """Prices a mechanism that is in no cache."""
    rate, count = {SURROGATE: (1.0, 27), ITERATIVE: (0.02 + 0.01 * case, 300)}[name]
    compute_cost(plan(PlanRequest(name, 50, make_spec(FEATURES), {}, Mechanism(3.0 + 0.1 * case, rate, count))), DELTA)


def price_target(name: str, case: int, **parameters: float) -> None:
    """Calibrates to a target that is in no cache, and prices the result."""
    if name == ITERATIVE:
        parameters = {"iterations": 100 + case, "sampling_rate": 0.02 + 0.01 * case}

    def at(noise: float) -> tuple[PrivacyEvent, ...]:
        return plan(PlanRequest(name, 50, make_spec(FEATURES), parameters, None, noise))

    compute_cost(at(calibrate(at, 0.2 + 0.07 * case, DELTA)), DELTA)


def dry_run(name: str, case: int) -> None:
    """Dry-runs a request, as a quote does."""
    declared = make_facts(FEATURES, SLOTS)
    request = PlanRequest(name, 50 + case, make_spec(FEATURES), {}, None, 3.0)
    carry_out(find_method(name).plan(request, declared), declared, to_the_end=False)


def measure_milliseconds(case: Callable[[int], None]) -> list[float]:
    """Processor times of :data:`CASES` different cases."""
    times = []
    for number in range(CASES):
        start = time.process_time()
        case(number)
        times.append((time.process_time() - start) * 1e3)
    return times


def main() -> None:
    """Prints the table."""
    table = Table(title=f"Prices, {CASES} new cases each: milliseconds of processor time")
    for name in ("method", "case", "median", "worst"):
        table.add_column(name, justify="right")
    for name in (SURROGATE, ITERATIVE):
        price_mechanism(name, CASES)  # loads the libraries
        dry_run(name, CASES)
        cases = {
            "mechanism": partial(price_mechanism, name),
            "target": partial(price_target, name),
            "dry run": partial(dry_run, name),
        }
        if name == SURROGATE:
            cases["target, a third sampled"] = partial(price_target, name, sampling_rate=0.3)
        for title, case in cases.items():
            times = measure_milliseconds(case)
            table.add_row(name, title, f"{statistics.median(times):.0f}", f"{max(times):.0f}")
    Console(width=110).print(table)


if __name__ == "__main__":
    main()
