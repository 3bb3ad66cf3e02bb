"""The page of ``benchmarks.breadth``: how many medians are within what is promised, and which are furthest from it."""

import textwrap
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final

import numpy as np

from benchmarks.environment import described
from benchmarks.summaries import number

if TYPE_CHECKING:
    from benchmarks.breadth import Reached

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
    "Written by `make breadth`. `dp-psvi-surrogate` at its defaults, 100 points, δ = 1/N, on a hundred tables that mix "
    "columns of every kind at random, at every ε at which σD²/N is at most 1.2; medians of three runs, whose coins are "
    "the same at every ε. The floor is what one Gaussian release of the whole budget would lose if it knew the mode "
    "and the information of these rows beforehand, by the best of several bounds; it is no bound, and runs may do "
    "better. Promised is a KL of at most 5 times it up to ε = 0.2, and 8 times at ε = 1. Flags and levels are columns "
    "of 0 and 1 that are *not* declared as what they are. Every table: [breadth.csv](breadth.csv)."
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
    text, measured = (textwrap.fill(each, 120, break_on_hyphens=False) for each in (TEXT, described(circumstances)))
    return PAGE.format(
        text=text, circumstances=measured, lines="\n".join(lines), worst=len(worst), worst_lines="\n".join(told)
    )


def _epsilons(found: Sequence["Reached"]) -> list[float]:
    return sorted({each.epsilon for each in found})


def _by_epsilon(found: Sequence["Reached"]) -> str:
    ratios = np.array([each.ratio for each in found])
    within = sum(each.beyond <= 1 for each in found)
    spread = " | ".join(f"{np.quantile(ratios, at):.1f}" for at in (0.5, 0.9, 1.0))
    return f"| {found[0].epsilon:g} | {len(found)} | {within} | {spread} | {np.sum(ratios < 1)} |"
