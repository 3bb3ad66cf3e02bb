"""Pictures of releases and budgets (needs the ``plot`` extra).

Each function draws on ``ax`` if it is given, else on a new figure, and returns the axes or the figure. No picture is
shown or saved.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from corevault._arguments import describe, import_extra
from corevault.errors import InvalidArgument, WrongType
from corevault.prediction import find_quantile

if TYPE_CHECKING:
    from corevault.gaussian import Gaussian
    from corevault.pseudocoreset import Pseudocoreset
    from corevault.replies.dataset import Budget

_BLUE, _ORANGE, _GREY, _LIGHT = "#0b5fa5", "#c45500", "#5c6670", "#d5dae0"
"""Colours that differ in lightness too, so that they differ in grey and for every kind of colour vision."""
_MOST_PAIRS: Final = 8


def import_pyplot() -> Any:
    """The module ``matplotlib.pyplot``. Raises ``MissingDependency`` if it is not installed."""
    return import_extra("matplotlib.pyplot", "plot", "for pictures")


@dataclass(frozen=True)
class Plots:
    """Pictures of one release: ``core.plot.forest()``, ``weights()`` and ``pairs()``.

    >>> example().plot.forest(original=True).get_xlabel()
    'coefficient, in original units'
    """

    core: "Pseudocoreset"

    def forest(self, *, level: float = 0.95, original: bool = False, ax: Any = None) -> Any:
        """Intervals of the coefficients: thick without the release's noise, thin with it.

        With ``original`` they are in the table's units, whose sizes may differ much.

        >>> axes = example().plot.forest(level=0.9)
        >>> [label.get_text() for label in axes.get_yticklabels()][0]
        'age'
        """
        plain, noisy = self.core.posterior(noise=False), self.core.posterior()
        if original:
            plain, noisy = plain.in_original_units(), noisy.in_original_units()
        axes = _make_axes(ax, height=1.2 + 0.32 * len(noisy.names))
        places, z = np.arange(len(noisy.names)), find_quantile(level)
        axes.axvline(0.0, color=_GREY, linewidth=0.8, linestyle=":")
        if noisy.noise is not None:
            axes.hlines(places, *_ends(noisy, z), color=_ORANGE, linewidth=1.6, label="with the release's noise")
        axes.hlines(places, *_ends(plain, z), color=_BLUE, linewidth=4.5, label="without its noise")
        axes.plot(noisy.mean, places, "o", color="white", markeredgecolor=_BLUE, markersize=5)
        axes.set_yticks(places, noisy.names)
        axes.invert_yaxis()
        axes.set_xlabel("coefficient, in original units" if original else "coefficient, in the design's coordinates")
        axes.set_title(f"{self.core.release.family}, {level:.0%} intervals{self._grade()}", loc="left", fontsize=10)
        axes.legend(
            loc="upper center", bbox_to_anchor=(0.5, -0.75 / axes.figure.get_figheight()), ncols=2, frameon=False
        )
        return axes

    def weights(self, *, ax: Any = None) -> Any:
        """The weights of the points, from large to small.

        The title has their sum and the effective number of points, ``(sum w)² / sum w²``. It is the size if all weights
        are equal.

        >>> len(example().plot.weights().patches) == example().release.size
        True
        """
        weight = np.sort(self.core.weight)[::-1]
        axes = _make_axes(ax, height=3.2)
        axes.bar(np.arange(1, len(weight) + 1), weight, color=_BLUE, width=0.85)
        axes.set_xlabel("pseudopoint, by weight")
        axes.set_ylabel("weight, in rows")
        total, squares = float(weight.sum()), float((weight**2).sum())
        effective = total**2 / squares if squares else 0.0
        title = f"{len(weight)} points amount to {total:,.0f} rows; effective number of points {effective:.0f}"
        axes.set_title(title, loc="left", fontsize=10)
        return axes

    def pairs(self, names: Sequence[str] | None = None, *, level: float = 0.95) -> Any:
        """Ellipses of each pair of coefficients, with and without the release's noise; returns the figure.

        ``names`` select at most 8 coefficients, by default the first ones.

        >>> len(example().plot.pairs(["age", "smoker"]).axes)
        4
        """
        plain, noisy = self.core.posterior(noise=False), self.core.posterior()
        chosen = _choose(noisy.names, names)
        size = len(chosen)
        figure, grid = import_pyplot().subplots(
            size, size, figsize=(1.9 * size + 0.6, 1.9 * size + 0.6), squeeze=False, layout="constrained"
        )
        for row, below in enumerate(chosen):
            for column, left in enumerate(chosen):
                axes = grid[row, column]
                axes.tick_params(labelsize=7)
                if column > row:
                    axes.set_axis_off()
                elif column == row:
                    _draw_density(axes, noisy, below, _ORANGE)
                    _draw_density(axes, plain, below, _BLUE)
                else:
                    _draw_ellipse(axes, noisy, [left, below], level, colour=_ORANGE)
                    _draw_ellipse(axes, plain, [left, below], level, colour=_BLUE)
                if row == size - 1:
                    axes.set_xlabel(noisy.names[left], fontsize=8)
                if column == 0 and row > 0:
                    axes.set_ylabel(noisy.names[below], fontsize=8)
        figure.suptitle(f"{level:.0%} regions: blue without, orange with the release's noise", fontsize=9)
        return figure

    def _grade(self) -> str:
        grade = self.core.release.grade
        return "" if grade in (None, "calibrated") else f" ({grade}: do not use them)"


def plot_budget(budget: "Budget", *, ax: Any = None) -> Any:
    """The spent and reserved ε of an account, and its limit; see ``Budget.plot``."""
    axes = _make_axes(ax, height=2.2)
    spent, reserved, limit = budget.spent.epsilon, budget.reserved.epsilon, budget.limit.epsilon
    axes.barh(0.0, limit, color="white", edgecolor=_GREY, height=0.5)
    axes.barh(0.0, spent, color=_BLUE, height=0.5, label=f"spent {spent:.3g}")
    hatched = {"color": "white", "edgecolor": _ORANGE, "hatch": "////", "height": 0.5}
    if reserved > 0.0:
        axes.barh(0.0, reserved, left=spent, label=f"reserved {reserved:.3g}", **hatched)
    axes.axvline(limit, color=_GREY, linewidth=2.0, label=f"limit {limit:.3g}")
    axes.set_xlim(0.0, 1.05 * max(limit, spent + reserved))
    axes.set_ylim(-0.4, 0.4)
    axes.set_yticks([])
    axes.set_xlabel("ε, composed")
    left = f"one more job of ε up to {budget.remaining.epsilon:.3g} fits"
    jobs = f"{budget.jobs.settled} settled, {budget.jobs.reserved} open, {budget.jobs.refused} refused"
    axes.set_title(f"{budget.dataset_id}\n{left}; jobs: {jobs}", loc="left", fontsize=9)
    axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.38), ncols=3, frameon=False, fontsize=9)
    return axes


def _make_axes(ax: Any, *, height: float) -> Any:
    if ax is None:
        _, ax = import_pyplot().subplots(figsize=(6.4, height), layout="constrained")
    if not hasattr(ax, "plot") or not hasattr(ax, "set_xlabel"):
        raise WrongType(f"ax must be axes of matplotlib; {describe(ax)}.")
    ax.spines[["top", "right"]].set_visible(False)
    return ax


def _ends(belief: "Gaussian", z: float) -> tuple[Any, Any]:
    return belief.mean - z * belief.sd, belief.mean + z * belief.sd


def _choose(names: Sequence[str], chosen: Sequence[str] | None) -> list[int]:
    if chosen is None:
        return list(range(min(len(names), _MOST_PAIRS)))
    if isinstance(chosen, str):
        raise WrongType("names must be a list of coefficients, even for a single one.")
    if unknown := [name for name in chosen if name not in names]:
        raise InvalidArgument(f"There is no coefficient {unknown[0]!r}; see core.posterior().names.")
    if not 0 < len(chosen) <= _MOST_PAIRS:
        raise InvalidArgument(f"names must have 1 to {_MOST_PAIRS} coefficients.")
    return [list(names).index(name) for name in chosen]


def _draw_density(axes: Any, belief: "Gaussian", place: int, colour: str) -> None:
    mean, sd = belief.mean[place], belief.sd[place]
    x = np.linspace(mean - 3.5 * sd, mean + 3.5 * sd, 121)
    axes.plot(x, np.exp(-0.5 * ((x - mean) / sd) ** 2) / sd, color=colour, linewidth=1.3)
    axes.set_yticks([])


def _draw_ellipse(axes: Any, belief: "Gaussian", pair: list[int], level: float, *, colour: str) -> None:
    """The region of two coefficients. Its squared radius is chi-squared with 2 degrees of freedom."""
    root = np.linalg.cholesky(belief.covariance[np.ix_(pair, pair)])
    angle = np.linspace(0.0, 2.0 * np.pi, 121)
    circle = np.sqrt(-2.0 * np.log1p(-level)) * np.array([np.cos(angle), np.sin(angle)])
    x, y = belief.mean[pair][:, None] + root @ circle
    axes.plot(x, y, color=colour, linewidth=1.3)
    axes.axhline(0.0, color=_LIGHT, linewidth=0.7, zorder=0)
    axes.axvline(0.0, color=_LIGHT, linewidth=0.7, zorder=0)
