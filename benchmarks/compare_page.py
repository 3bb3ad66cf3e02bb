"""The page of ``benchmarks.compare``: KL ratios of two engines by kind and epsilon."""

import math
from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby
from typing import Final, NamedTuple

import numpy as np

from benchmarks.environment import describe
from benchmarks.outcomes import Outcome
from benchmarks.reliability_targets import is_bad, is_calibrated
from benchmarks.summaries import NOTHING, format_number, list_distinct, wrap_paragraph
from benchmarks.tables import KINDS

LEAST_KL: Final = 0.01
"""Nats; a smaller KL counts as this, because no use of a posterior notices it."""
_WORST: Final = 10
PAGE: Final = """# {new} compared with {old}

{text}

{circumstances}

| tables | pairs | KL ratio | {epsilons} | failed | calibrated | bad |
| --- | ---: | ---: | {rule} | ---: | ---: | ---: |
{lines}

The worst pairs for {new}:

| table | kind | ε | {old} (nats) | {new} (nats) | ratio | draw |
| ---: | --- | ---: | ---: | ---: | ---: | --- |
{worst}
"""
TEXT: Final = (
    "Written by `make compare`. Both engines release the same {tables} tables of seed {seed}, with the same noise. "
    "A ratio is the KL of {new} over that of {old}: below 1, {new} is nearer to the full posterior. Ratios are "
    "geometric means over tables, for each ε and for all. After ×/÷ is the standard error, as a factor. For all ε, the "
    "ratios of one table are averaged first. "
    f"A KL below {LEAST_KL:g} nats counts as {LEAST_KL:g}. A pair without two finite values is in no ratio. The last "
    "columns count failed, calibrated and bad releases, old and new. Every release: [{file}]({file})."
)


class Pair(NamedTuple):
    """The outcomes of two engines on one table at one epsilon."""

    old: Outcome
    new: Outcome

    @property
    def log_ratio(self) -> float:
        """The logarithm of the ratio of KLs, new over old; NaN if one of them is not finite."""
        if not (math.isfinite(self.old.kl) and math.isfinite(self.new.kl)):
            return math.nan
        return math.log(max(self.new.kl, LEAST_KL) / max(self.old.kl, LEAST_KL))


def make_pairs(outcomes: Iterable[Outcome], names: tuple[str, str]) -> list[Pair]:
    """Pair the outcomes of two engines, by table and epsilon."""
    by_engine = {name: {(each.table, each.epsilon): each for each in outcomes if each.engine == name} for name in names}
    old, new = (by_engine[name] for name in names)
    return [Pair(old[place], new[place]) for place in sorted(old) if place in new]


def compute_mean_ratio(pairs: Sequence[Pair]) -> tuple[float, float]:
    """Compute the geometric mean over tables, and its error as a factor.

    The logarithms of one table are averaged first. The factor is NaN for fewer than two tables.
    """
    finite = sorted((pair for pair in pairs if math.isfinite(pair.log_ratio)), key=lambda pair: pair.old.table)
    by_table = groupby(finite, key=lambda pair: pair.old.table)
    means = np.array([np.mean([pair.log_ratio for pair in of_table]) for _, of_table in by_table])
    if not len(means):
        return math.nan, math.nan
    error = float(means.std(ddof=1)) / math.sqrt(len(means)) if len(means) > 1 else math.nan
    return math.exp(float(means.mean())), math.exp(error)


def list_worst(pairs: Sequence[Pair]) -> list[Pair]:
    """The pairs of the largest ratios."""
    finite = (pair for pair in pairs if math.isfinite(pair.log_ratio))
    return sorted(finite, key=lambda pair: pair.log_ratio, reverse=True)[:_WORST]


def render_page(
    outcomes: Sequence[Outcome], names: tuple[str, str], file: str, seed: int, circumstances: Mapping[str, str]
) -> str:
    """The page: all tables, groups and kinds, then the worst pairs."""
    pairs, (old, new) = make_pairs(outcomes, names), names
    epsilons = sorted({pair.old.epsilon for pair in pairs})
    kinds = [name for name in KINDS if any(pair.old.kind == name for pair in pairs)]
    groups = list_distinct(KINDS[kind].group for kind in kinds)
    lines = [render_line("**all**", pairs, epsilons)]
    lines += [
        render_line(f"**{name}**", [pair for pair in pairs if pair.old.group == name], epsilons) for name in groups
    ]
    lines += [render_line(kind, [pair for pair in pairs if pair.old.kind == kind], epsilons) for kind in kinds]
    tables = f"{len({pair.old.table for pair in pairs}):,}"
    return PAGE.format(
        old=old,
        new=new,
        text=wrap_paragraph(TEXT.format(old=old, new=new, tables=tables, seed=seed, file=file)),
        circumstances=wrap_paragraph(describe(circumstances)),
        epsilons=" | ".join(f"ε = {epsilon:g}" for epsilon in epsilons),
        rule=" | ".join("---:" for _ in epsilons),
        lines="\n".join(lines),
        worst="\n".join(map(_describe, list_worst(pairs))),
    )


def render_line(name: str, pairs: Sequence[Pair], epsilons: Sequence[float]) -> str:
    """A line of the first table."""
    by_epsilon = [_ratio([pair for pair in pairs if pair.old.epsilon == epsilon]) for epsilon in epsilons]
    counts = [
        f"{sum(map(test, (pair.old for pair in pairs)))}, {sum(map(test, (pair.new for pair in pairs)))}"
        for test in (has_failed, is_calibrated, is_bad)
    ]
    return f"| {' | '.join([name, str(len(pairs)), _ratio(pairs), *by_epsilon, *counts])} |"


def has_failed(outcome: Outcome) -> bool:
    """Whether a run gave no release, or cannot be compared."""
    return bool(outcome.failure) or not math.isfinite(outcome.kl)


def _ratio(pairs: Sequence[Pair]) -> str:
    mean, error = compute_mean_ratio(pairs)
    if math.isnan(mean):
        return NOTHING
    return format_number(mean) if math.isnan(error) else f"{format_number(mean)} ×/÷ {format_number(error)}"


def _describe(pair: Pair) -> str:
    old, new = pair
    figures = f"{format_number(old.kl)} | {format_number(new.kl)} | {format_number(math.exp(pair.log_ratio))}"
    return f"| {old.table} | {old.kind} | {old.epsilon:g} | {figures} | {old.what} |"
