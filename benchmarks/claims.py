"""Claims about results: one line is below another at every measured place."""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from benchmarks.records import Record, read
from benchmarks.summaries import choose, format_number, list_distinct

Pairs = list[tuple[str, float, float]]
"""Places, each with a value that should be smaller and one that should be larger."""


@dataclass(frozen=True, slots=True)
class Claim:
    """A statement of a paper, and the values by which it holds or fails.

    ``compare`` reads results from the folder. It gives no pairs if they do not exist.
    """

    text: str
    compare: Callable[[Path], Pairs]


@dataclass(frozen=True, slots=True)
class Figure:
    """A figure with the claims of its text.

    ``results`` name files, and ``why`` explains differences. ``page`` is the page of another command that measures the
    figure, and empty if ``make papers`` does.
    """

    name: str
    content: str
    results: tuple[str, ...]
    claims: tuple[Claim, ...]
    why: str = ""
    page: str = ""


@dataclass(frozen=True, slots=True)
class Other:
    """Figures without a claim, or of another system whose page may not exist yet."""

    name: str
    content: str
    page: str = ""
    why: str = ""


@dataclass(frozen=True, slots=True)
class Finding:
    """Whether a claim holds at each place, and in words. ``measured`` is 0 without results."""

    text: str
    held: int
    measured: int


def check(claim: Claim, folder: Path) -> Finding:
    """Compare the values, and describe the place with the largest ratio."""
    pairs = claim.compare(folder)
    if not pairs:
        return Finding(f"{claim.text}: not run.", 0, 0)
    held = sum(smaller < larger for _, smaller, larger in pairs)
    place, smaller, larger = max(pairs, key=lambda pair: pair[1] / max(pair[2], 1e-300))
    closest = f"closest at {place}: {format_number(smaller)} against {format_number(larger)}"
    return Finding(f"{claim.text}: at {held} of {len(pairs)} places; {closest}.", held, len(pairs))


def is_below(
    experiment: str,
    lower: str,
    upper: Sequence[str],
    *,
    axis: str = "size",
    quantity: str = "kl",
    among: Callable[[float], bool] = lambda _: True,
    tables: Callable[[str], bool] = lambda _: True,
) -> Callable[[Path], Pairs]:
    """Make the comparison of medians at each place of an axis.

    ``lower`` is compared with the least of ``upper``. The quantity is the KL by default. ``tables`` chooses data sets.
    """

    def compare(folder: Path) -> Pairs:
        path = folder / f"{experiment}.csv"
        records = read(path) if path.exists() else []
        pairs: Pairs = []
        for data in filter(tables, list_distinct(record.data for record in records)):
            of_data = choose(records, data=data)
            for at in sorted({float(getattr(record, axis)) for record in of_data}):
                here = choose(of_data, **{axis: at})
                others = [value for name in upper for value in _median(choose(here, method=name), quantity)]
                for value in _median(choose(here, method=lower), quantity) if others and among(at) else ():
                    pairs.append((f"{data}, {_NAMES[axis]} = {at:g}", value, min(others)))
        return pairs

    return compare


_NAMES = {"size": "M", "epsilon": "ε"}


def _median(records: Sequence[Record], quantity: str) -> Iterator[float]:
    values = [float(getattr(record, quantity)) for record in records]
    values = [value for value in values if not math.isnan(value)]
    if values:
        yield float(np.median(values))
