"""The page of ``benchmarks.reliability``: grades, coverage and distance by kind and epsilon."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

import numpy as np

from benchmarks.environment import describe
from benchmarks.outcomes import Outcome
from benchmarks.reliability_targets import (
    FAR_NATS,
    FAR_TIMES,
    Target,
    compute_ratio,
    estimate_correlation,
    is_bad,
    is_calibrated,
    list_targets,
)
from benchmarks.stated import NOT_USABLE
from benchmarks.summaries import NOTHING, format_number, list_distinct, render_rows, wrap_paragraph
from benchmarks.tables import KINDS

_WORST: Final = 10
PAGE: Final = """# Reliability on fresh tables

{text}

{circumstances}

{targets}
| tables | releases | failed | calibrated | bad | worst | coverage | by noise | centre | KL / floor | of calibrated |
| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |
{lines}

By ε: calibrated releases; bad ones; coverage, and coverage by noise, of calibrated releases.

| kind | {epsilons} |
| --- | {rule} |
{cells}

The worst calibrated releases:

| table | kind | ε | KL (nats) | `noise_kl` | ratio | draw |
| ---: | --- | ---: | ---: | ---: | ---: | --- |
{worst}
"""
TEXT: Final = (
    "Written by `make reliability`. Releases of `{engines}` on {tables} tables of seed {seed}. The method was not "
    "tuned on this seed; the rows of real tables are the same for every seed. Each release is compared with the full "
    "posterior of the rows (Laplace approximation at the mode). "
    f"A calibrated release is *bad* if its KL exceeds {FAR_NATS:g} nats and {FAR_TIMES:g} times its `noise_kl`. "
    f"*Worst* is the largest ratio of KL to `noise_kl`, where a smaller `noise_kl` counts as "
    f"{FAR_NATS / FAR_TIMES:g} nats. A ratio above {FAR_TIMES:g} is bad. *Coverage* is of calibrated releases: the "
    "share of their parameters whose full posterior mean is in the 95 % interval. The interval has the variance of the "
    "posterior plus the doubt. *By noise* is the same share for intervals with the variance of the doubt alone. "
    "*Centre* is *by noise* for all usable releases, not only calibrated ones. The floor is the expected KL of one "
    "Gaussian release that spends the whole budget and is given the mode of these rows. Ratios are medians. *Releases* "
    "include failed runs. A kind at one ε has few releases, so its coverage is uncertain. It is *undecided* if a "
    "limit is inside its 95 % interval. The interval is that of a share of independent parameters. Parameters of one "
    "release share errors, so they count as fewer: the correlation of their coverage, estimated from all calibrated "
    "releases, is {correlation:.2f}. Ten releases of ten parameters each count as {count:.0f} independent parameters. "
    "Every release: [{file}]({file})."
)


def render_page(outcomes: Sequence[Outcome], file: str, circumstances: Mapping[str, str]) -> str:
    """The page: groups, epsilons and kinds, then kinds by epsilon, then the worst releases."""
    epsilons = sorted({each.epsilon for each in outcomes})
    kinds = [name for name in KINDS if any(each.kind == name for each in outcomes)]
    groups = list_distinct(KINDS[kind].group for kind in kinds)
    lines = [render_line("**all**", outcomes)]
    lines += [render_line(f"**{group}**", _select(outcomes, group=group)) for group in groups]
    lines += [render_line(f"ε = {epsilon:g}", _select(outcomes, epsilon=epsilon)) for epsilon in epsilons]
    lines += [render_line(kind, _select(outcomes, kind=kind)) for kind in kinds]
    correlation = estimate_correlation(list(filter(is_calibrated, outcomes)))
    text = TEXT.format(
        engines=", ".join(list_distinct(each.engine for each in outcomes)),
        tables=f"{len({each.table for each in outcomes}):,}",
        seed=outcomes[0].seed,
        file=file,
        correlation=correlation,
        count=10 / (correlation + (1 - correlation) / 10),
    )
    return PAGE.format(
        text=wrap_paragraph(text),
        circumstances=wrap_paragraph(describe(circumstances)),
        targets=render_targets(list_targets(outcomes)),
        lines="\n".join(lines),
        epsilons=" | ".join(f"{epsilon:g}" for epsilon in epsilons),
        rule=" | ".join("---:" for _ in epsilons),
        cells="\n".join(_list_cells(kind, epsilons, outcomes) for kind in kinds),
        worst="\n".join(map(_describe, list_worst(outcomes))) or f"| {' | '.join([NOTHING] * 7)} |",
    )


def render_targets(targets: Sequence[Target]) -> str:
    """The table of targets, below their count."""
    words = {True: "yes", False: "**no**", None: NOTHING}
    rows = [[each.asked, each.measured, words[each.holds]] for each in targets]
    held = sum(each.holds is True for each in targets)
    return f"Targets that hold: {held} of {len(targets)}.\n\n{render_rows(['asked', 'measured', 'holds'], rows)}"


def _list_cells(kind: str, epsilons: Sequence[float], outcomes: Sequence[Outcome]) -> str:
    cells = (render_cell(_select(outcomes, kind=kind, epsilon=epsilon)) for epsilon in epsilons)
    return f"| {kind} | {' | '.join(cells)} |"


def _select(outcomes: Iterable[Outcome], **values: object) -> list[Outcome]:
    return [each for each in outcomes if all(getattr(each, name) == value for name, value in values.items())]


def render_line(name: str, outcomes: Sequence[Outcome]) -> str:
    """A line of the first table."""
    calibrated, released = list(filter(is_calibrated, outcomes)), _select(outcomes, failure="")
    centred = [each for each in released if each.grade != NOT_USABLE]
    bad = sum(map(is_bad, calibrated))
    entries = [
        name,
        str(len(outcomes)),
        str(len(outcomes) - len(released)),
        _share(len(calibrated), len(outcomes)),
        f"{bad} ({_share(bad, len(calibrated))})" if calibrated else NOTHING,
        format_number(max(map(compute_ratio, calibrated))) if calibrated else NOTHING,
        _mean(calibrated, "coverage"),
        _mean(calibrated, "noise_coverage"),
        _mean(centred, "noise_coverage"),
        _median_over_floor(released),
        _median_over_floor(calibrated),
    ]
    return f"| {' | '.join(entries)} |"


def render_cell(outcomes: Sequence[Outcome]) -> str:
    """A cell of the second table."""
    calibrated = list(filter(is_calibrated, outcomes))
    if not calibrated:
        return f"0 of {len(outcomes)}"
    coverage = f"{_mean(calibrated, 'coverage')}, {_mean(calibrated, 'noise_coverage')}"
    return f"{len(calibrated)} of {len(outcomes)}; {sum(map(is_bad, calibrated))}; {coverage}"


def list_worst(outcomes: Sequence[Outcome]) -> list[Outcome]:
    """The calibrated releases of the largest ratios."""
    return sorted(filter(is_calibrated, outcomes), key=compute_ratio, reverse=True)[:_WORST]


def _describe(each: Outcome) -> str:
    figures = f"{format_number(each.kl)} | {format_number(each.noise_kl)} | {format_number(compute_ratio(each))}"
    return f"| {each.table} | {each.kind} | {each.epsilon:g} | {figures} | {each.what} |"


def _share(count: int, total: int) -> str:
    return f"{count / total:.0%}" if total else NOTHING


def _mean(outcomes: Sequence[Outcome], name: str) -> str:
    return f"{np.mean([getattr(each, name) for each in outcomes]):.0%}" if outcomes else NOTHING


def _median_over_floor(outcomes: Sequence[Outcome]) -> str:
    ratios = [each.kl / each.floor for each in outcomes if each.floor > 0]
    return format_number(float(np.median(ratios))) if ratios else NOTHING
