"""The report: how many people are alone with the shape of their network, and how well an attacker links them."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from corevault._arguments import import_extra
from corevault._show import Table
from corevault.errors import InvalidArgument
from corevault.risk.anonymity import count_graphs, group_by_shape
from corevault.risk.linkage import Linkage, link
from corevault.risk.networks import make_network
from corevault.risk.traces import Traces, read_traces

SIZES: Final = (2, 3, 4, 5, 6, 8, 10)
_LARGEST: Final = 20
_MOST_PEOPLE: Final = 1500
_ATTACKED: Final = 50
"""Places of the networks in the attack."""
_KEEP_SAFE: Final = (
    "All figures are exact counts of your rows. They are not differentially private: keep them as safe as the rows."
)


@dataclass(frozen=True, slots=True)
class RiskReport:
    """A report on traces.

    ``people`` is the number of people in it, ``skipped`` that of rows with a missing value. ``anonymity`` has a row for
    each size of network, with and without directions. ``linkage`` is the attack. ``left_out`` people are not in
    the report: they have one visit only, or they exceed its largest number of people.

    >>> from corevault.risk import simulate
    >>> rows = simulate(people=20, places=9, visits=40, rng=np.random.default_rng(1))
    >>> report(rows, user="user", place="place", time="time", sizes=(3,)).left_out
    0
    """

    people: int
    left_out: int
    skipped: int
    anonymity: Table
    linkage: Linkage

    def __repr__(self) -> str:
        return "\n".join([*self._list_sentences(), "", repr(self.anonymity), "", _KEEP_SAFE])

    def _repr_html_(self) -> str:
        sentences = "".join(f"<p>{sentence}</p>" for sentence in [*self._list_sentences(), _KEEP_SAFE])
        return f"{sentences}{self.anonymity._repr_html_()}"

    def _list_sentences(self) -> list[str]:
        worst = max(self.anonymity, key=lambda row: row["unique"])
        direction = "with" if worst["directed"] else "without"
        found = self.linkage.summarise()
        left_out = (
            f"{self.people:,} people; {self.left_out:,} more are left out, and {self.skipped:,} rows lack a value."
        )
        unique = (
            f"{worst['unique']:.0%} of them are alone with the shape of their {worst['places']} most visited places, "
            f"{direction} directions of moves."
        )
        attack = (
            "An attacker has one part of each trace and looks for the other. It is among the first tenth of all "
            f"people for {found['within_a_tenth']:.0%} (10% by chance), and the first for {found['hit_at_once']:.1%}."
        )
        return [left_out, unique, attack]

    def plot(self) -> Any:
        """Draw unique people by size of network, and ranks of the attack; returns the figure.

        Needs the ``plot`` extra.

        >>> from corevault.risk import simulate
        >>> rows = simulate(people=20, places=9, visits=40, rng=np.random.default_rng(1))
        >>> found = report(rows, user="user", place="place", time="time")
        >>> found.plot()  # doctest: +SKIP
        """
        pyplot = import_extra("matplotlib.pyplot", "plot", "for pictures")
        figure, (left, right) = pyplot.subplots(1, 2, figsize=(9.0, 3.6), layout="constrained")
        for directed, colour, label in ((True, "#c45500", "with directions"), (False, "#0b5fa5", "without")):
            rows = [row for row in self.anonymity if row["directed"] is directed]
            sizes, shares = [row["places"] for row in rows], [row["unique"] for row in rows]
            left.plot(sizes, shares, "o-", color=colour, label=label)
        left.set_xlabel("most visited places in the network")
        left.set_ylabel("people who are alone with its shape")
        left.set_ylim(-0.02, 1.02)
        left.legend(frameon=False)
        ranks = np.sort(self.linkage.ranks)
        share = np.arange(1, len(ranks) + 1) / len(ranks)
        right.plot(ranks, share, color="#0b5fa5", label="attack")
        right.plot([1, len(ranks)], [1 / len(ranks), 1], color="#5c6670", linestyle=":", label="by chance")
        right.set_xlabel("rank of the true person")
        right.set_ylabel("share of people up to this rank")
        right.set_ylim(-0.02, 1.02)
        right.legend(frameon=False)
        for axes in (left, right):
            axes.spines[["top", "right"]].set_visible(False)
        return figure


def report(
    table: object,
    *,
    user: str,
    place: str,
    time: str,
    sizes: Sequence[int] = SIZES,
    most_people: int = _MOST_PEOPLE,
    kernel: str = "shortest-paths",
) -> RiskReport:
    """Measure how well movements identify people.

    Nothing is sent anywhere. The table has one row for each visit. ``user``, ``place`` and ``time`` name its columns;
    see :func:`read_traces`. People with one visit are left out. Of the others, the ``most_people`` with most visits are
    kept.

    Args:
        table: a DataFrame of pandas or polars, an Arrow table, or a mapping of names to columns.
        user: the column of people.
        place: the column of places.
        time: the column of times.
        sizes: numbers of most visited places, from 1 to 20.
        most_people: the largest number of people in the report.
        kernel: of the attack; see :func:`compare_networks`.

    Raises:
        InvalidArgument: a size is not from 1 to 20, or fewer than two people have two visits.

    >>> from corevault.risk import simulate
    >>> rows = simulate(people=30, places=20, visits=60, rng=np.random.default_rng(1))
    >>> report(rows, user="user", place="place", time="time").anonymity[2]["shapes"]
    4
    """
    if not sizes or any(not 1 <= size <= _LARGEST for size in sizes):
        raise InvalidArgument(f"sizes must be numbers from 1 to {_LARGEST}.")
    traces = read_traces(table, user=user, place=place, time=time)
    moving = Traces(
        tuple(name for name, visits in zip(traces.people, traces.visits, strict=True) if len(visits) > 1),
        tuple(visits for visits in traces.visits if len(visits) > 1),
        traces.places,
    ).keep_longest(most_people)
    if len(moving) < 2:
        raise InvalidArgument("Fewer than two people have two visits or more, so there is nothing to compare.")
    rows = [measure_anonymity(moving, size, directed=directed) for size in sizes for directed in (False, True)]
    attack = link(moving, size=_ATTACKED, kernel=kernel)
    return RiskReport(len(moving), len(traces) - len(moving), traces.skipped, Table(rows), attack)


def measure_anonymity(traces: Traces, size: int, *, directed: bool) -> dict[str, Any]:
    """Measure the anonymity of networks of ``size`` places.

    ``k`` is the number of people in the smallest class of equal shapes. ``unique`` is the share of people in classes of
    one. ``median_class`` is the median size of a person's class. ``shapes`` is the number of possible shapes of
    networks with exactly ``size`` places.
    """
    networks = [make_network(visits, size).get_edges(directed=directed) for visits in traces.visits]
    classes = group_by_shape(networks)
    counts = Counter(classes)
    of_each = np.array([counts[each] for each in classes])
    return {
        "places": size,
        "directed": directed,
        "k": int(of_each.min()),
        "unique": float(np.mean(of_each == 1)),
        "median_class": float(np.median(of_each)),
        "classes": len(counts),
        "shapes": count_graphs(size, directed=directed),
    }
