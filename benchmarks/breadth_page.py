"""The page of ``benchmarks.breadth``: how many medians are within what is promised, and which are furthest from it."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final

import numpy as np

from app.inference.methods.surrogate.schedule import UNRESOLVED
from benchmarks.environment import describe
from benchmarks.experiments.unseen import METHOD, SIZE, read_promise
from benchmarks.summaries import in_words, number, paragraph

if TYPE_CHECKING:
    from benchmarks.breadth import Reached

TABLES, RUNS = 100, 3
"""How many tables the page is of, and how many runs of each."""
_WORST: Final = 15
PAGE: Final = """# Random tables

{text}

{circumstances}

| ε | tables | within what is promised | KL over the floor: median | nine in ten below | largest | below 1 |
| ---: | ---: | ---: | ---: | ---: | ---: | ---: |
{lines}

The {worst} furthest from what is promised:

| table | rows x features | ε | KL (nats) | floor | KL over the floor | `noise_kl` | runs trusted |
| ---: | --- | ---: | ---: | ---: | ---: | ---: | ---: |
{worst_lines}
"""
TEXT: Final = (
    f"Written by `make breadth`. `{METHOD}` at its defaults, {SIZE} points, δ = 1/N, on {in_words(TABLES)} tables that "
    f"mix columns of every kind at random, at every ε at which σD²/N is at most {UNRESOLVED:g}; medians of "
    f"{in_words(RUNS)} runs, whose coins are the same at every ε. The floor is what one Gaussian release of the whole "
    "budget would lose if it knew the mode and the information of these rows beforehand, by the best of several "
    f"bounds; it is no bound, and runs may do better. Promised is a KL of at most {read_promise(0.2)} times it up to "
    f"ε = 0.2, and {read_promise(1.0)} times at ε = 1. Flags and levels are columns of 0 and 1 that are *not* declared "
    "as what they are. Every table: [breadth.csv](breadth.csv)."
)


def page(found: Sequence["Reached"], circumstances: Mapping[str, str]) -> str:
    """By epsilon, then the worst."""
    lines = [_by_epsilon([each for each in found if each.epsilon == epsilon]) for epsilon in _epsilons(found)]
    worst = sorted(found, key=lambda each: each.beyond, reverse=True)[:_WORST]
    told = [
        f"| {each.table} | {each.what} | {each.epsilon:g} | {number(each.kl)} | {number(each.floor)} "
        f"| {each.ratio:.1f} | {number(each.noise_kl)} | {each.trusted} |"
        for each in worst
    ]
    return PAGE.format(
        text=paragraph(TEXT),
        circumstances=paragraph(describe(circumstances)),
        lines="\n".join(lines),
        worst=len(worst),
        worst_lines="\n".join(told),
    )


def _epsilons(found: Sequence["Reached"]) -> list[float]:
    return sorted({each.epsilon for each in found})


def _by_epsilon(found: Sequence["Reached"]) -> str:
    ratios = np.array([each.ratio for each in found])
    within = sum(each.beyond <= 1 for each in found)
    spread = " | ".join(f"{np.quantile(ratios, at):.1f}" for at in (0.5, 0.9, 1.0))
    return f"| {found[0].epsilon:g} | {len(found)} | {within} | {spread} | {np.sum(ratios < 1)} |"
