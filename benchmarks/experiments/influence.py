"""Influence of single points, and a robust fit of contaminated points (thesis, Fig. 2.1).

The model is a normal distribution of unknown mean and deviation. Its posterior is computed on a grid around the mode.
The influence of a point is the Fisher-Rao distance ``arccos sum sqrt(p q)`` between the posteriors without it and with
it (Kurtek & Bharath, *Biometrika* 102, 2015).
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final

import numpy as np
from scipy.optimize import minimize

from app.inference.core.model import Array64
from benchmarks.figures import read_lines, write_lines
from benchmarks.plots import add_legend, open_figure
from benchmarks.study import Study
from benchmarks.summaries import format_number, render_rows

BETAS: Final = (0.0, 0.1, 0.25, 0.5)
ROBUST: Final = 0.5
POINTS: Final = tuple(np.arange(0, 30.01, 0.5).tolist())
ROWS, FEWER_ROWS, SEEDS = 10_000, 1_000, 9
SHARE, FAR, WIDE = 0.01, 5.0, 5.0
PRIOR: Final = (10.0, 3.0)
"""Deviations of the normal priors of the mean and of the logarithm of the deviation."""
INFLUENCE, FIT = "influence", "fit"
_SIDE, _REACH = 61, 10.0
"""Places on each axis of the grid, and its half width in standard deviations of the posterior."""
_SHOWN: Final = (0.0, 1.0, 2.0, 3.0, 5.0, 10.0, 30.0)
_STEP: Final = 1e-3


@dataclass(frozen=True, slots=True)
class Line:
    """The influence of a point at ``x``, or posterior means of a table."""

    part: str
    beta: float
    seed: int
    x: float = float("nan")
    influence: float = float("nan")
    mean: float = float("nan")
    deviation: float = float("nan")


def compute_potentials(x: Array64, mean: Array64, log_deviation: Array64, beta: float) -> Array64:
    """Compute the log-likelihoods of points ``(n,)`` at parameters ``(g,)``; ``(n, g)``.

    With ``beta``, they are ``p(x)^beta / beta - integral p^(1 + beta) / (1 + beta)``. As beta decreases to 0, this
    tends to the log-likelihood, except for a constant.
    """
    logs = -0.5 * np.square((x[:, None] - mean) / np.exp(log_deviation)) - log_deviation - 0.5 * np.log(2 * np.pi)
    if not beta:
        return np.asarray(logs)
    mass = np.exp(-beta * (log_deviation + 0.5 * np.log(2 * np.pi))) / np.sqrt(1 + beta)
    return np.asarray(np.exp(beta * logs) / beta - mass / (1 + beta))


def compute_log_posterior(x: Array64, parameters: Array64, beta: float) -> Array64:
    """Compute the logarithm of the posterior, except for a constant, at parameters ``(2, g)``; ``(g,)``."""
    fit = sum(
        compute_potentials(part, parameters[0], parameters[1], beta).sum(axis=0) for part in np.array_split(x, 20)
    )
    return np.asarray(fit - 0.5 * np.square(parameters / np.array(PRIOR)[:, None]).sum(axis=0))


def make_posterior(x: Array64, beta: float) -> tuple[Array64, Array64]:
    """Compute a grid of parameters ``(2, g)`` around the mode, and their probabilities ``(g,)``."""

    def measure(place: Array64) -> float:
        return -float(compute_log_posterior(x, place[:, None], beta)[0])

    start = np.array([np.median(x), np.log(np.quantile(np.abs(x - np.median(x)), 0.6827))])
    mode = minimize(measure, start, method="Nelder-Mead", options={"xatol": 1e-5, "fatol": 1e-6}).x
    bends = [(measure(mode + step) - 2 * measure(mode) + measure(mode - step)) / _STEP**2 for step in _STEP * np.eye(2)]
    axis = np.linspace(-_REACH, _REACH, _SIDE)
    steps = np.array(np.meshgrid(axis, axis)).reshape(2, -1)
    parameters = mode[:, None] + steps / np.sqrt(bends)[:, None]
    logs = compute_log_posterior(x, parameters, beta)
    weights = np.exp(logs - logs.max())
    return parameters, weights / weights.sum()


def compute_influences(x: Sequence[float], parameters: Array64, probabilities: Array64, beta: float) -> Array64:
    """Compute the influence of a further point at each place of ``x``, ``(n,)``."""
    potentials = compute_potentials(np.array(x), parameters[0], parameters[1], beta)
    ratios = np.exp(potentials - potentials.max(axis=1, keepdims=True))
    affinity = (np.sqrt(ratios) @ probabilities) / np.sqrt(ratios @ probabilities)
    return np.asarray(np.arccos(np.minimum(affinity, 1.0)))


def draw_contaminated(rng: np.random.Generator) -> Array64:
    """Draw standard normal points, of which about 1 % are from N(5, 25)."""
    is_far = rng.random(FEWER_ROWS) < SHARE
    return np.where(is_far, FAR + WIDE * rng.standard_normal(FEWER_ROWS), rng.standard_normal(FEWER_ROWS))


def list_lines(*, quick: bool) -> Iterator[Line]:
    """Measure influences on one table, and fits of several tables."""
    rows = np.random.default_rng(0).standard_t(3, ROWS // 20 if quick else ROWS)
    for beta in BETAS:
        parameters, probabilities = make_posterior(rows, beta)
        found = compute_influences(POINTS, parameters, probabilities, beta)
        yield from (Line(INFLUENCE, beta, 0, x, float(value)) for x, value in zip(POINTS, found, strict=True))
    for seed in range(2 if quick else SEEDS):
        x = draw_contaminated(np.random.default_rng((seed, 1)))
        for beta in (0.0, ROBUST):
            (mean, log_deviation), probabilities = make_posterior(x, beta)
            means = float(mean @ probabilities), float(np.exp(log_deviation) @ probabilities)
            yield Line(FIT, beta, seed, mean=means[0], deviation=means[1])


def measure(path: Path, *, quick: bool) -> None:
    """Measure both parts."""
    write_lines(path, list(list_lines(quick=quick)), Line)


def _name(beta: float) -> str:
    return f"β = {beta:g}" if beta else "log-likelihood"


def draw(path: Path, picture: Path) -> None:
    """Draw influences by place, and the fitted densities of all tables."""
    lines = read_lines(path, Line)
    with open_figure(picture, "Influence and contaminated points", (8.2, 3.9), (1, 2)) as (figure, (left, right)):
        for beta in BETAS:
            chosen = [line for line in lines if line.part == INFLUENCE and line.beta == beta]
            left.plot([line.x for line in chosen], [line.influence for line in chosen], label=_name(beta), lw=1.2)
        left.set(xlabel="point x", ylabel="influence (Fisher–Rao distance)")
        x = np.linspace(-6, 6, 400)
        for line in lines:
            if line.part == FIT:
                color = f"C{BETAS.index(line.beta)}"
                right.plot(x, _compute_density(x, line.mean, line.deviation), color=color, lw=0.7, alpha=0.7)
        right.plot(x, _compute_density(x, 0, 1), color="black", ls=":", lw=1.4, label="without contamination")
        right.set(xlabel="x", ylabel="fitted density")
        add_legend(figure, [left, right], 5)


def _compute_density(x: Array64, mean: float, deviation: float) -> Array64:
    return np.asarray(np.exp(-0.5 * np.square((x - mean) / deviation)) / (deviation * np.sqrt(2 * np.pi)))


def tabulate(path: Path) -> str:
    """Show some influences, and the median fits."""
    lines = read_lines(path, Line)
    found = {(line.beta, line.x): line.influence for line in lines if line.part == INFLUENCE}
    head = ["influence", *(f"x = {x:g}" for x in _SHOWN), "largest at"]
    rows = [
        [
            _name(beta),
            *(format_number(found[beta, x]) for x in _SHOWN),
            f"{max(POINTS, key=partial(_find, found, beta)):g}",
        ]
        for beta in BETAS
    ]
    fits = [
        [
            _name(beta),
            *(f"{np.median([getattr(line, name) for line in of_beta]):.3f}" for name in ("mean", "deviation")),
        ]
        for beta in (0.0, ROBUST)
        for of_beta in ([line for line in lines if line.part == FIT and line.beta == beta],)
    ]
    return render_rows(head, rows) + "\n" + render_rows(["contaminated points", "mean", "deviation"], fits)


def _find(found: dict[tuple[float, float], float], beta: float, x: float) -> float:
    return found[beta, x]


STUDY: Final = Study(
    "influence",
    "Influence of single points",
    "A normal distribution of unknown mean and deviation. Left: influence of one further point on the posterior of "
    f"{ROWS:,} points from Student's t with 3 degrees of freedom. Right: densities at the posterior means of {SEEDS} "
    f"tables of {FEWER_ROWS:,} points. About {SHARE:.0%} of them are from N({FAR:g}, {WIDE**2:g}), and the others from "
    "N(0, 1). The second table has medians over these tables.",
    measure,
    draw,
    tabulate,
)
