"""The page of ``benchmarks.breadth``: medians within the target, and the worst tables."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final

import numpy as np

from app.inference.methods.surrogate.planning import UNRESOLVED
from benchmarks.environment import describe
from benchmarks.experiments.unseen import METHOD, SIZE, read_promise
from benchmarks.summaries import format_number, spell_count, wrap_paragraph

if TYPE_CHECKING:
    from benchmarks.breadth import Reached

TABLES, RUNS = 100, 3
"""The number of tables on the page, and the number of runs of each."""
_WORST: Final = 15
PAGE: Final = """# Random tables

{text}

{circumstances}

| ε | tables | within the aim | KL over the floor: median | nine in ten below | largest | below 1 |
| ---: | ---: | ---: | ---: | ---: | ---: | ---: |
{lines}

The {worst} furthest from the aim:

| table | rows x features | ε | KL (nats) | floor | KL over the floor | `noise_kl` | runs trusted |
| ---: | --- | ---: | ---: | ---: | ---: | ---: | ---: |
{worst_lines}
"""
TEXT: Final = (
    f"Written by `make breadth`. `{METHOD}` at its defaults, {SIZE} points, δ = 1/N, on {spell_count(TABLES)} tables "
    f"with a random mix of columns of every kind. A table has every ε at which σD²/N is at most {UNRESOLVED:g}. KLs "
    f"are medians of {spell_count(RUNS)} runs, with the same random numbers at every ε. The floor is the expected KL "
    "of one Gaussian release that spends the whole budget. It is given the mode and the information of these rows, "
    "and uses the best of several bounds. The floor is not a lower bound: runs may be better. The aim is a KL of at "
    f"most {read_promise(0.2)} times the floor up to ε = 0.2, and {read_promise(1.0)} times at ε = 1. Flags and levels "
    "are columns of 0 and 1 that are *not* declared as binary or categorical. Every table: [breadth.csv](breadth.csv)."
)


def render_page(results: Sequence["Reached"], circumstances: Mapping[str, str]) -> str:
    """The page: a line for each epsilon, then the worst tables."""
    lines = [_by_epsilon([each for each in results if each.epsilon == epsilon]) for epsilon in _epsilons(results)]
    worst = sorted(results, key=lambda each: each.beyond, reverse=True)[:_WORST]
    worst_lines = [
        f"| {each.table} | {each.what} | {each.epsilon:g} | {format_number(each.kl)} | {format_number(each.floor)} "
        f"| {each.ratio:.1f} | {format_number(each.noise_kl)} | {each.trusted} |"
        for each in worst
    ]
    return PAGE.format(
        text=wrap_paragraph(TEXT),
        circumstances=wrap_paragraph(describe(circumstances)),
        lines="\n".join(lines),
        worst=len(worst),
        worst_lines="\n".join(worst_lines),
    )


def _epsilons(results: Sequence["Reached"]) -> list[float]:
    return sorted({each.epsilon for each in results})


def _by_epsilon(results: Sequence["Reached"]) -> str:
    ratios = np.array([each.ratio for each in results])
    within = sum(each.beyond <= 1 for each in results)
    spread = " | ".join(f"{np.quantile(ratios, at):.1f}" for at in (0.5, 0.9, 1.0))
    return f"| {results[0].epsilon:g} | {len(results)} | {within} | {spread} | {np.sum(ratios < 1)} |"
