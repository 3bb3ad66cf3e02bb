"""Compares accountants at 216 points: ``make accountants``.

The ledger's price, a privacy loss distribution, closed forms and a derivation from the definition are computed in this
process. TensorFlow Privacy and the statistics of JAX Privacy run in isolated environments, which are installed first.
``--page`` writes the page from the stored prices. The exit status is 1 if another accountant refutes the ledger, or if
a statistic differs.
"""

import argparse
import csv
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict
from typing import Any, Final

from benchmarks.accountants.environments import ask
from benchmarks.accountants.opinions import NAMES, find_differences, give_opinion, make_cases
from benchmarks.accountants.page import render
from benchmarks.accountants.points import (
    Point,
    find_shortfalls,
    list_points,
    price_by_definition,
    price_by_ledger,
    price_by_losses,
)
from benchmarks.environment import PAGES

PRICES: Final = PAGES / "accountants.csv"
OPINIONS: Final = PAGES / "accountants-statistics.csv"
PAGE: Final = PAGES / "accountants.md"
FIELDS: Final = (
    *("rate", "noise", "count", "delta", "ledger", "ledger_whole", "ledger_fractions", "whole", "fractions", "exact"),
    *("losses_down", "losses_up", "tensorflow_privacy", "tensorflow_privacy_losses"),
)


def price(point: Point) -> dict[str, Any]:
    """Price one point in this process."""
    return asdict(point) | price_by_ledger(point) | price_by_definition(point) | price_by_losses(point)


def compare(points: Sequence[Point], processes: int) -> tuple[list[dict[str, Any]], dict[str, str]]:
    """Price all points by all accountants; also returns the versions of the other packages."""
    with ProcessPoolExecutor(processes) as pool:
        records = list(pool.map(price, points, chunksize=9))
    request = {"points": [[point.rate, point.noise, point.count, point.delta] for point in points]}
    theirs = ask("tensorflow-privacy", "tensorflow_privacy_prices", request)
    for name, prices in theirs["prices"].items():
        for record, found in zip(records, prices, strict=True):
            record[name] = found
    return records, theirs["versions"]


def collect_opinions() -> tuple[list[dict[str, Any]], dict[str, str]]:
    """Compute the audit's statistics here and by JAX Privacy.

    There is one record for each case and statistic.
    """
    cases = make_cases()
    theirs = ask("jax-privacy", "jax_privacy_audit", {"cases": cases})
    records = [
        {
            "separation": case["separation"],
            "runs": len(case["present"]),
            "threshold": case["threshold"],
            "statistic": name,
            "here": own[name],
            "jax_privacy": other[name],
        }
        for case, own, other in zip(cases, map(give_opinion, cases), theirs["cases"], strict=True)
        for name in NAMES
    ]
    return records, theirs["versions"]


def write_csv(path: Any, fields: Sequence[str], records: Sequence[dict[str, Any]]) -> None:
    """Write records as CSV, with all digits."""
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, fields, lineterminator="\n")
        writer.writeheader()
        writer.writerows(records)


def read_csv(path: Any) -> list[dict[str, Any]]:
    """Read records with numbers; an empty cell is None."""
    with path.open(newline="") as file:
        return [{name: _read(value) for name, value in row.items()} for row in csv.DictReader(file)]


def _read(text: str) -> float | str | None:
    try:
        return float(text) if text else None
    except ValueError:
        return text


def main() -> int:
    """Compare accountants and write the page; return 1 if one refutes the ledger or a statistic."""
    parser = argparse.ArgumentParser(description="Compare accountants.")
    parser.add_argument("--page", action="store_true", help="write the page from stored prices")
    parser.add_argument("--processes", type=int, default=2)
    options = parser.parse_args()
    if not options.page:
        records, versions = compare(list_points(), options.processes)
        opinions, further = collect_opinions()
        write_csv(PRICES, FIELDS, records)
        write_csv(OPINIONS, tuple(opinions[0]), opinions)
        print({**versions, **further})
    records, statistics = read_csv(PRICES), read_csv(OPINIONS)
    PAGE.write_text(render(records, statistics))
    found = [(record, name) for record in records for name in find_shortfalls(record)]
    for record, name in found:
        print(f"the ledger is below {name}: {record}")
    differences = list(find_differences(statistics))
    for difference in differences:
        print(f"JAX Privacy has another statistic: {difference}")
    return int(bool(found or differences))


if __name__ == "__main__":
    raise SystemExit(main())
