"""Figures that other commands than ``make papers`` measure: movements, streams, and private variational inference."""

from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Final

import numpy as np

from benchmarks.claims import Claim, Figure, Pairs
from benchmarks.robust_figures import Row, find_median, read_rows
from benchmarks.summaries import list_distinct

WITH, WITHOUT, DEEP = "with", "without", "deep-shortest-paths"


def _read_shapes(folder: Path, name: str, direction: str) -> dict[int, float]:
    """Read a figure of networks by their number of places."""
    rows = [row for row in read_rows(folder, "mobility") if row["what"].endswith(f", {direction} direction")]
    return {int(row["what"].split()[0]): float(row["value"]) for row in rows if row["name"] == name}


def _read_attacks(folder: Path, name: str) -> dict[str, float]:
    rows = [row for row in read_rows(folder, "mobility") if "places" not in row["what"]]
    return {row["what"]: float(row["value"]) for row in rows if row["name"] == name}


def _compare_directions(folder: Path) -> Pairs:
    one, other = (_read_shapes(folder, "unique", each) for each in (WITHOUT, WITH))
    return [(f"{places} places", one[places], other[places]) for places in one]


def _grow_with_places(direction: str, first: int, last: int) -> Callable[[Path], Pairs]:
    def compare(folder: Path) -> Pairs:
        unique = _read_shapes(folder, "unique", direction)
        places = sorted(each for each in unique if first <= each <= last)
        return [(f"{a} and {b} places", unique[a], unique[b]) for a, b in pairwise(places)]

    return compare


def _are_alone(direction: str, first: int) -> Callable[[Path], Pairs]:
    def compare(folder: Path) -> Pairs:
        median = _read_shapes(folder, "median_class", direction)
        return [(f"{places} places", size, 2.0) for places, size in sorted(median.items()) if places >= first]

    return compare


def _beat_chance(folder: Path) -> Pairs:
    ranks, chance = (_read_attacks(folder, each) for each in ("mean_rank", "mean_rank_by_chance"))
    return [(kernel, rank, chance[kernel]) for kernel, rank in ranks.items()]


def _is_best(folder: Path) -> Pairs:
    ranks = _read_attacks(folder, "mean_rank")
    return [(kernel, ranks[DEEP], rank) for kernel, rank in ranks.items() if kernel != DEEP]


def _lose_privacy(folder: Path) -> Pairs:
    ranks, loss = (_read_attacks(folder, each) for each in ("mean_rank", "median_privacy_loss"))
    best = min(ranks, key=ranks.__getitem__, default="")
    return [(best, 0.0, loss[best])] if best else []


Find = Callable[[str, int, str], float]
"""A function of memory, size and column that finds a median."""


def _compare_memories(measure: Callable[[Find, int], tuple[float, float]], least: int = 0) -> Callable[[Path], Pairs]:
    """Compare medians of memories at each size, from ``least`` on."""

    def compare(folder: Path) -> Pairs:
        rows, pairs = read_rows(folder, "scmc"), list[tuple[str, float, float]]()
        for data in list_distinct(row["data"] for row in rows):
            own = [row for row in rows if row["data"] == data]

            def find(memory: str, size: int, column: str, own: list[Row] = own) -> float:
                where = {"memory": memory, **({"size": str(size)} if size else {})}
                found = find_median(own, column, **where)
                assert found is not None
                return found

            sizes = sorted(
                {int(row["size"]) for row in own if row["memory"] == "coreset" and int(row["size"]) >= least}
            )
            pairs += [(f"{data}, M = {size}", *measure(find, size)) for size in sizes]
        return pairs

    return compare


def _fall_with_batches(folder: Path) -> Pairs:
    rows = read_rows(folder, "topic-batches")
    rows = [row for row in rows if row["done"] == row["iterations"] and float(row["noise"])]
    pairs: Pairs = []
    for noise in list_distinct(row["noise"] for row in rows):
        values = {
            int(count): find_median(rows, "perplexity", noise=noise, iterations=count)
            for count in list_distinct(row["iterations"] for row in rows if row["noise"] == noise)
        }
        for few, many in pairwise(sorted(values)):
            small, large = values[few], values[many]
            assert small is not None
            assert large is not None
            pairs.append((f"noise {float(noise):g}, {few} and {many} batches", small, large))
    return pairs


def _compare_iterations(lower: int, upper: int) -> Callable[[Path], Pairs]:
    """Compare perplexities by iteration; noises are numbered: none, the accountant's, that of strong composition."""

    def compare(folder: Path) -> Pairs:
        rows = read_rows(folder, "topic-batches")
        followed = {row["noise"] for row in rows if row["done"] != row["iterations"]}
        noises, pairs = sorted(followed, key=float), list[tuple[str, float, float]]()
        rows = [row for row in rows if row["noise"] in followed]
        shown = {row["iterations"] for row in rows if row["done"] != row["iterations"]}
        rows = [row for row in rows if row["iterations"] in shown]
        for done in list_distinct(row["done"] for row in rows):
            low, high = (find_median(rows, "perplexity", noise=noises[each], done=done) for each in (lower, upper))
            assert low is not None
            assert high is not None
            pairs.append((f"iteration {done}", low, high))
        return pairs

    return compare


def _lower_first_words(folder: Path) -> Pairs:
    rows = read_rows(folder, "topics")
    pairs: Pairs = []
    for word in ("first", "second", "third"):
        noised = find_median(rows, word, what="run", noise="1.24", share="0.05")
        exact = find_median(rows, word, what="without noise")
        if noised is not None and exact is not None:
            pairs.append((f"{word} word", noised, exact))
    return pairs


def _fall_with_epsilon(folder: Path) -> Pairs:
    rows = [row for row in read_rows(folder, "news-topics") if row["what"] == "vips"]
    epsilons = sorted(list_distinct(row["epsilon"] for row in rows), key=float)
    values = {each: find_median(rows, "perplexity", epsilon=each) or np.nan for each in epsilons}
    return [(f"ε = {a} and {b}", values[b], values[a]) for a, b in pairwise(epsilons)]


def _compare_areas(upper: str, lower: str) -> Callable[[Path], Pairs]:
    """Compare mean areas at the published epsilons; those without privacy are of all epsilons."""

    def compare(folder: Path) -> Pairs:
        rows = read_rows(folder, "auc")

        def average(data: str, method: str, epsilon: str) -> float:
            areas = [
                row["auc"] for row in rows if (row["data"], row["method"], row["epsilon"]) == (data, method, epsilon)
            ]
            return float(np.mean([float(each) for each in areas]))

        pairs: Pairs = []
        for data in list_distinct(row["data"] for row in rows):
            for epsilon in ("0.5", "1", "2", "4"):
                low, high = (
                    average(data, each, "inf" if each == "full posterior" else epsilon) for each in (lower, upper)
                )
                pairs.append((f"{data}, ε = {epsilon}", low, high))
        return pairs

    return compare


def _compare_pixels(folder: Path) -> Pairs:
    """Compare shares of right pixels by the size of batches, at the published noise."""
    rows = [
        row
        for row in read_rows(folder, "sbn")
        if (row["form"], row["units"], row["stated"]) == ("one bound", "10", "0")
    ]
    rows = [row for row in rows if float(row["epsilon"])]
    batches = sorted({int(row["batch"]) for row in rows})
    right = {each: find_median(rows, "right", batch=str(each)) or np.nan for each in batches}
    return [(f"batches of {a:,} and {b:,}", right[a], right[b]) for a, b in pairwise(batches)]


def _miss_exact_pixels(folder: Path) -> Pairs:
    rows = [row for row in read_rows(folder, "sbn") if (row["form"], row["units"]) == ("one bound", "10")]
    exact = find_median(rows, "right", epsilon="0")
    private = [row for row in rows if float(row["epsilon"])]
    pairs: Pairs = []
    for batch, epsilon in dict.fromkeys((row["batch"], row["epsilon"]) for row in private):
        found = find_median(private, "right", batch=batch, epsilon=epsilon)
        assert found is not None
        assert exact is not None
        pairs.append((f"batches of {int(batch):,}, ε = {float(epsilon):.3g}", found, exact))
    return pairs


MOVEMENTS: Final = (
    Figure("T 3.5", "people alone with their network", ("mobility",),
           (Claim("at each number of places, more are alone with directions than without", _compare_directions),
            Claim("without directions, more places leave more alone, from 4 to 10 places",
                  _grow_with_places(WITHOUT, 4, 10)),
            Claim("with directions, more places leave more alone, from 3 to 8 places", _grow_with_places(WITH, 3, 8))),
           "The telephones cannot be had; aeroplanes replace them. The page has the published numbers.", "mobility.md"),
    Figure("T 3.6", "people with the same network", ("mobility",),
           (Claim("with directions, the median group has one member from 5 places on", _are_alone(WITH, 5)),
            Claim("without directions, the median group has one member from 8 places on", _are_alone(WITHOUT, 8))),
           "Aeroplanes need two more places each.", "mobility.md"),
    Figure("T 3.7, 3.8", "ranks of the true person", ("mobility",),
           (Claim("the mean rank of every kernel is below that of chance", _beat_chance),
            Claim("deep shortest paths have the lowest mean rank", _is_best)),
           "An airline flies its aeroplanes by turns, so they have few habits.", "mobility.md"),
    Figure("T 3.9", "privacy loss of an attack", ("mobility",),
           (Claim("with the best kernel, the median privacy loss is above 0", _lose_privacy),),
           "The published median is 2.52.", "mobility.md"),
)  # fmt: skip
"""Figures of chapter 3 of the thesis."""
SYSTEMS: Final = (
    Figure("C, three experiments", "streams with a memory of weighted rows", ("scmc",),
           (Claim("from M = 50 on, a coreset has less than twice the error of all rows",
                  _compare_memories(lambda find, size: (
                      find("coreset", size, "kl"), 2 * find("all rows", 0, "kl")), least=50)),
            Claim("a coreset has a smaller error than a reservoir of the same size",
                  _compare_memories(lambda find, size: (
                      find("coreset", size, "kl"), find("reservoir", size, "kl")))),
            Claim("a coreset takes fewer evaluations of the likelihood than all rows",
                  _compare_memories(lambda find, size: (
                      find("coreset", size, "evaluations"), find("all rows", 0, "evaluations"))))),
           "The poster has no numbers. The normal distribution of unknown covariance is a model of the benchmark "
           "alone: it has no points in releases.", "scmc.md"),
    Figure("V 2", "perplexity of topics by batch and noise", ("topic-batches",),
           (Claim("larger batches have the lower perplexity at the same noise", _fall_with_batches),),
           "The articles of Wikipedia cannot be had; a generated corpus replaces them.", "topic-batches.md"),
    Figure("V 3", "perplexity of topics by iteration", ("topic-batches",),
           (Claim("without noise, the perplexity is below that by the accountant", _compare_iterations(0, 1)),
            Claim("the perplexity by the accountant is below that by strong composition", _compare_iterations(1, 2))),
           "The generated corpus again.", "topic-batches.md"),
    Figure("V Table 1", "first words of topics", ("topics",),
           (Claim("noise lowers the probabilities of the first three words", _lower_first_words),),
           "The generated corpus again. Its topics under noise have first words of larger probabilities.", "topics.md"),
    Figure("V Table 1, real texts", "topics of news articles", (),
           (Claim("the perplexity is lower at a larger ε", _fall_with_epsilon),),
           "News articles replace the articles of Wikipedia. They are too few for a small ε.", "news-topics.md"),
    Figure("V 5", "areas of private logistic regressions", ("auc",),
           (Claim("the area of objective perturbation with δ = 0 is below that of VIPS",
                  _compare_areas("vips", "objective perturbation, δ = 0")),
            Claim("the area of VIPS is below that of the full posterior", _compare_areas("full posterior", "vips"))),
           "The stroke data cannot be had; census income replaces them. The noise of objective perturbation with δ = 0 "
           "grows with the number of columns, and the paper's table has 4,146.", "auc.md"),
    Figure("V 7", "pixels of private belief networks", ("sbn",),
           (Claim("larger batches have more right pixels", _compare_pixels),
            Claim("without noise, more pixels are right", _miss_exact_pixels)),
           "10 hidden units instead of 100, and one bound for all pixels. Batches below 3,200 rows leave releases that "
           "are graded not usable: there, pixels are right as often as with all of them off.", "sbn.md"),
)  # fmt: skip
"""Figures of the poster, and of *Variational Bayes in Private Settings*."""
