"""The page of ``benchmarks.trust``: counts of trusted and far-off releases, and a picture."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

import matplotlib as mpl
import numpy as np

mpl.use("Agg")

import matplotlib.pyplot as plt

from benchmarks.environment import describe
from benchmarks.plots import COLOURS
from benchmarks.summaries import format_number, list_distinct, wrap_paragraph

if TYPE_CHECKING:
    from benchmarks.trust import Outcome

FAR_NATS, FAR_TIMES = 50.0, 10.0
"""A release is far off if its KL exceeds both ``FAR_NATS`` nats and ``FAR_TIMES`` times its stated ``noise_kl``."""
LEAST, MOST = 1e-3, 1e6
"""Values outside are drawn at these limits. Poisson rates may be wrong by any power."""
PAGE: Final = """# Calibration of the trusted flag

{text}

{circumstances}

![KL against noise_kl](trust.png)

| tables | releases | trusted | trusted and far off | not trusted and far off | {ratios} |
| --- | ---: | ---: | ---: | ---: | ---: |
{lines}
"""
TEXT: Final = (
    "Written by `make trust`. Releases of `dp-psvi-surrogate`, 12 points each, of random tables, most of which are "
    "degenerate: constant, duplicated, very narrow or rare columns; heavy tails; labels that are separable, all equal "
    "or noise. 300 to 20,000 slots, some of them empty; noise multipliers from 1 to 70. A release is far off if its KL "
    f"to the full posterior exceeds {FAR_NATS:g} nats and {FAR_TIMES:g} times the `noise_kl` that it states. Every "
    "release: [trust.csv](trust.csv)."
)
RATIOS: Final = "KL / `noise_kl` of the trusted: median; nine in ten below"


def is_far(outcome: "Outcome") -> bool:
    """Whether the stated noise does not explain the KL. True also if one of them is not finite."""
    return not (np.isfinite(outcome.noise_kl) and outcome.kl <= max(FAR_NATS, FAR_TIMES * outcome.noise_kl))


def render_page(outcomes: Sequence["Outcome"], circumstances: Mapping[str, str]) -> str:
    """The page: a line for each kind of targets, each design and each signal."""
    lines = []
    for targets in list_distinct(each.targets for each in outcomes):
        of_kind = [each for each in outcomes if each.targets == targets]
        lines.append(_line(f"**{targets}**", of_kind))
        lines += _lines(of_kind, lambda each: each.design)
        lines += _lines(of_kind, lambda each: f"{each.signal}, by signal")
    measured = wrap_paragraph(describe(circumstances))
    return PAGE.format(text=wrap_paragraph(TEXT), circumstances=measured, ratios=RATIOS, lines="\n".join(lines))


def _lines(outcomes: Sequence["Outcome"], group: Callable[["Outcome"], str]) -> Iterable[str]:
    return (
        _line(name, [each for each in outcomes if group(each) == name]) for name in sorted(set(map(group, outcomes)))
    )


def _line(name: str, outcomes: Sequence["Outcome"]) -> str:
    trusted = [each for each in outcomes if each.trusted]
    ratios = np.array([each.kl / each.noise_kl for each in trusted if each.noise_kl > 0])
    spread = "; ".join(format_number(float(np.quantile(ratios, at))) for at in (0.5, 0.9)) if len(ratios) else "–"
    counts = [
        len(outcomes),
        len(trusted),
        sum(map(is_far, trusted)),
        sum(is_far(each) and not each.trusted for each in outcomes),
    ]
    return f"| {' | '.join([name, *map(str, counts), spread])} |"


def draw(outcomes: Sequence["Outcome"], path: Path) -> None:
    """Draws KL against the stated ``noise_kl``, a panel for each kind of targets.

    Releases above the line are far off.
    """
    kinds = list_distinct(each.targets for each in outcomes)
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
