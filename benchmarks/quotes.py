"""How long a price takes: ``make bench``. The pure part of a quote, without HTTP and database.

Every case is new to the caches; a *mechanism* is priced as it stands, a *target* is calibrated and then priced.
"""

import statistics
import time
from collections.abc import Callable

from rich.console import Console
from rich.table import Table

from app.inference.protocol import Mechanism, PlanRequest
from app.inference.registry import method
from app.privacy.accounting import cost
from app.privacy.calibration import calibrate
from app.privacy.events import PrivacyEvent
from benchmarks.sources import facts, spec

FEATURES, SLOTS, DELTA, CASES = 20, 20_000, 1e-6, 15


def plan(request: PlanRequest) -> tuple[PrivacyEvent, ...]:
    """The events of a request on a generated declaration."""
    return method("dp-psvi").plan(request, facts(FEATURES, SLOTS)).events


def mechanism(case: int) -> None:
    """Price a mechanism that nobody has asked for."""
    wanted = Mechanism(3.0 + 0.1 * case, 0.02 + 0.01 * case, 300)
    cost(plan(PlanRequest("dp-psvi", 50, spec(FEATURES), {}, wanted)), DELTA)


def target(case: int) -> None:
    """Calibrate to a target that nobody has asked for, and price the result."""
    chosen = {"iterations": 100 + case, "sampling_rate": 0.02 + 0.01 * case}

    def at(noise: float) -> tuple[PrivacyEvent, ...]:
        return plan(PlanRequest("dp-psvi", 50, spec(FEATURES), chosen, None, noise))

    cost(at(calibrate(at, 0.2 + 0.07 * case, DELTA)), DELTA)


def milliseconds(case: Callable[[int], None]) -> list[float]:
    """Times of :data:`CASES` different cases."""
    found = []
    for number in range(CASES):
        start = time.perf_counter()
        case(number)
        found.append((time.perf_counter() - start) * 1e3)
    return found


def main() -> None:
    """Print the table."""
    table = Table(title=f"Prices of DP-PSVI, {CASES} new cases each: milliseconds")
    for name in ("case", "median", "worst"):
        table.add_column(name, justify="right")
    mechanism(CASES)  # loads the libraries
    for case in (mechanism, target):
        times = milliseconds(case)
        table.add_row(case.__name__, f"{statistics.median(times):.0f}", f"{max(times):.0f}")
    Console(width=110).print(table)


if __name__ == "__main__":
    main()
