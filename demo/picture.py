"""A picture of the posteriors' coefficients and of the used budget, as PNG."""

from collections.abc import Sequence
from pathlib import Path

import matplotlib as mpl
import numpy as np

mpl.use("Agg")

import matplotlib.pyplot as plt
from corevault import Budget
from matplotlib.axes import Axes

from demo.posteriors import Comparison

_INK, _FULL, _CORE, _POOL, _QUIET = "#1d2433", "#1d2433", "#d9822b", "#2a6fbb", "#c9ced8"


def draw(path: Path, comparison: Comparison, totals: Sequence[float], refused_total: float, budget: Budget) -> None:
    """Writes the picture; ``totals`` are the composed ε after each job."""
    plt.rcParams.update({"font.size": 10, "axes.edgecolor": _QUIET, "text.color": _INK, "axes.labelcolor": _INK})
    figure, (left, right) = plt.subplots(1, 2, figsize=(12, 5.8), width_ratios=(2.1, 1), layout="constrained")
    _coefficients(left, comparison)
    _budget(right, totals, refused_total, budget)
    figure.suptitle("RAND Health Insurance Experiment: who sees a doctor at all?", fontsize=13, weight="bold")
    path.parent.mkdir(exist_ok=True)
    figure.savefig(path, dpi=130)
    plt.close(figure)


def _coefficients(axes: Axes, comparison: Comparison) -> None:
    rows = np.arange(len(comparison.full.names))[::-1]
    series = (
        ("full table (the owner's side only)", comparison.full, _FULL, 0.22),
        (f"first release, KL {comparison.single_kl[0]:.1f} nats", comparison.single[0], _CORE, 0.0),
        (
            f"all {len(comparison.single)} releases together, KL {comparison.pooled_kl:.1f} nats",
            comparison.pooled,
            _POOL,
            -0.22,
        ),
    )
    for label, belief, color, shift in series:
        half = 1.96 * belief.sd
        axes.errorbar(belief.mean, rows + shift, xerr=half, fmt="o", ms=4.5, lw=2.2, color=color, label=label)
    axes.axvline(0, color=_QUIET, lw=1, zorder=0)
    axes.set_yticks(rows, comparison.full.names)
    axes.set_xlabel("coefficient in the design's coordinates, with 95 % interval")
    axes.set_title(f"Posteriors (KL of the prior: {comparison.prior_kl:,.0f} nats)", loc="left")
    axes.legend(loc="upper right", frameon=False)
    axes.spines[["top", "right"]].set_visible(False)


def _budget(axes: Axes, totals: Sequence[float], refused_total: float, budget: Budget) -> None:
    names = [f"job {i + 1}" for i in range(len(totals))]
    axes.bar(names, totals, color=_POOL, width=0.6)
    axes.bar([f"job {len(totals) + 1}"], [refused_total], color="none", edgecolor=_CORE, hatch="///", width=0.6)
    for x, total in enumerate([*totals, refused_total]):
        axes.annotate(f"{total:.2f}", (x, total), ha="center", va="bottom", xytext=(0, 3), textcoords="offset points")
    label = {"boxstyle": "round,pad=0.3", "facecolor": "white", "edgecolor": "none"}
    axes.annotate("refused", (len(totals), refused_total / 2), ha="center", color=_CORE, weight="bold", bbox=label)
    axes.axhline(budget.limit.epsilon, color=_INK, lw=1.5, ls="--")
    axes.annotate("limit", (-0.45, budget.limit.epsilon), va="bottom", xytext=(0, 3), textcoords="offset points")
    axes.set_ylim(0, 1.15 * max(refused_total, budget.limit.epsilon))
    axes.set_ylabel("composed ε after the job")
    axes.set_title(f"Budget: ε ≤ {budget.limit.epsilon:g} at δ = {budget.limit.delta:g}", loc="left")
    axes.spines[["top", "right"]].set_visible(False)
