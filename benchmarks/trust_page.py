"""The page of ``benchmarks.trust``: how many releases are trusted, how many of them are far off, and a picture."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

import matplotlib as mpl
import numpy as np

mpl.use("Agg")

import matplotlib.pyplot as plt

from benchmarks.environment import describe
from benchmarks.plots import COLOURS
from benchmarks.summaries import distinct, number, paragraph

if TYPE_CHECKING:
    from benchmarks.trust import Outcome

FAR_NATS, FAR_TIMES = 50.0, 10.0
"""A release is far off if its KL exceeds both so many nats and so many times what it states of noise."""
LEAST, MOST = 1e-3, 1e6
"""Values beyond are drawn there: rates that were not found may be off by any power."""
PAGE: Final = """# Releases that can be trusted

{text}

{circumstances}

![KL beside noise_kl](trust.png)

| tables | releases | trusted | trusted and far off | not trusted and far off | {ratios} |
| --- | ---: | ---: | ---: | ---: | ---: |
{lines}
"""
TEXT: Final = (
    "Written by `make trust`. Releases of `dp-psvi-surrogate`, 12 points each, of random tables, most of which are "
    "degenerate: constant, duplicated, very narrow or rare columns, heavy tails, labels that are separable, all alike "
    "or noise, 300 to 20,000 slots, some of them empty, noise multipliers from 1 to 70. A release is far off if its KL "
    f"to the full posterior exceeds {FAR_NATS:g} nats and {FAR_TIMES:g} times the `noise_kl` that it states. Every "
    "release: [trust.csv](trust.csv)."
)
RATIOS: Final = "KL / `noise_kl` of the trusted: median; nine in ten below"


def far(outcome: "Outcome") -> bool:
    """Whether noise, as it is stated, does not explain how far off it is; so if it is no number, either."""
    return not (np.isfinite(outcome.noise_kl) and outcome.kl <= max(FAR_NATS, FAR_TIMES * outcome.noise_kl))


def page(outcomes: Sequence["Outcome"], circumstances: Mapping[str, str]) -> str:
    """A line for each kind of targets, and for each design and signal of it."""
    lines = []
    for targets in distinct(each.targets for each in outcomes):
        of_kind = [each for each in outcomes if each.targets == targets]
        lines.append(_line(f"**{targets}**", of_kind))
        lines += _lines(of_kind, lambda each: each.design)
        lines += _lines(of_kind, lambda each: f"{each.signal}, by signal")
    measured = paragraph(describe(circumstances))
    return PAGE.format(text=paragraph(TEXT), circumstances=measured, ratios=RATIOS, lines="\n".join(lines))


def _lines(outcomes: Sequence["Outcome"], group: Callable[["Outcome"], str]) -> Iterable[str]:
    return (
        _line(name, [each for each in outcomes if group(each) == name]) for name in sorted(set(map(group, outcomes)))
    )


def _line(name: str, outcomes: Sequence["Outcome"]) -> str:
    trusted = [each for each in outcomes if each.trusted]
    ratios = np.array([each.kl / each.noise_kl for each in trusted if each.noise_kl > 0])
    spread = "; ".join(number(float(np.quantile(ratios, at))) for at in (0.5, 0.9)) if len(ratios) else "–"
    counts = [
        len(outcomes),
        len(trusted),
        sum(map(far, trusted)),
        sum(far(each) and not each.trusted for each in outcomes),
    ]
    return f"| {' | '.join([name, *map(str, counts), spread])} |"


def draw(outcomes: Sequence["Outcome"], path: Path) -> None:
    """KL beside what is stated of noise, a panel for each kind of targets; far off is what lies above the line."""
    kinds = distinct(each.targets for each in outcomes)
    plt.rcParams.update({"font.size": 9, "axes.spines.top": False, "axes.spines.right": False})
    figure, grid = plt.subplots(1, len(kinds), figsize=(5.2 * len(kinds), 4.4), squeeze=False, layout="constrained")
    for axes, targets in zip(grid.flat, kinds, strict=True):
        for trusted, colour, marker, label in (
            (False, COLOURS[0], "x", "not trusted"),
            (True, COLOURS[1], "o", "trusted"),
        ):
            shown = [each for each in outcomes if each.targets == targets and each.trusted == trusted]
            x, y = (np.clip([getattr(each, name) for each in shown], LEAST, MOST) for name in ("noise_kl", "kl"))
            axes.scatter(x, y, s=12, c=colour, marker=marker, lw=0.8, label=f"{label}, {len(shown)}")
        across = np.geomspace(LEAST, MOST, 200)
        axes.plot(
            across, np.maximum(FAR_NATS, FAR_TIMES * across), color="#6b7280", ls="--", lw=1, label="far off above"
        )
        axes.set(
            xscale="log", yscale="log", xlabel="noise_kl as stated (nats)", ylabel="KL to the full posterior (nats)"
        )
        axes.set_title(targets, loc="left", fontsize=10)
        axes.legend(frameon=False, loc="lower right")
    figure.savefig(path, dpi=130)
    plt.close(figure)
