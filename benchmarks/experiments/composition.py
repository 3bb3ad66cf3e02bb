"""The cost of published runs by two ways of composition.

The runs are of Fig. 2 and 7 of *Variational Bayes in Private Settings*.

*Strong composition* is the baseline of the paper (Dwork & Roth, *Algorithmic Foundations of Differential Privacy*,
2014, Theorem 3.20). Each iteration is ``(e, d)``-private by the exact curve of the Gaussian mechanism (Balle & Wang,
ICML 2018). Sampling at rate q makes that ``(log(1 + q (exp(e) - 1)), q d)``. The best split of delta is used.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
from scipy.optimize import brentq
from scipy.special import log_ndtr, ndtr

from app.privacy.accounting import compute_cost
from app.privacy.events import GaussianEvent, PoissonSampledEvent, encode
from benchmarks.figures import read_lines, write_lines
from benchmarks.plots import open_figure
from benchmarks.study import Study
from benchmarks.summaries import format_number, render_rows

DELTA: Final = 1e-4
NOISES: Final = (1.0, 1.1, 1.24, 1.5, 2.0)
TOPICS, NETWORK = "topics", "belief network"
SETTINGS: Final = (
    *((TOPICS, batch, 400_000, noise) for batch in (5_000, 10_000, 20_000) for noise in NOISES),
    *((NETWORK, batch, 60_000, 1.0) for batch in (400, 800, 1600, 3200)),
)
"""Model, rows of a batch, all rows, and noise multiplier; the iterations are one pass over the rows."""
PUBLISHED: Final = {(TOPICS, 20_000, 1.24): 2.44, (NETWORK, 400, 1.0): 2.3468, (NETWORK, 800, 1.0): 2.398,
                    (NETWORK, 1600, 1.0): 3.2262, (NETWORK, 3200, 1.0): 4.8253}  # fmt: skip
"""The paper's values of epsilon; it does not state their delta."""
_SPLITS: Final = np.geomspace(1e-4, 1, 60)[:-1]
_MOST: Final = 1e3


@dataclass(frozen=True, slots=True)
class Line:
    """The cost of a run by both ways.

    ``needed`` is the noise at which strong composition has the accountant's cost.
    """

    model: str
    batch: int
    iterations: int
    rate: float
    noise: float
    accountant: float
    strong: float
    needed: float


def compute_single_epsilon(noise: float, delta: float) -> float:
    """Compute epsilon of one Gaussian mechanism at ``delta``, by its exact curve."""

    def exceed(epsilon: float) -> float:
        left, right = 0.5 / noise - epsilon * noise, -0.5 / noise - epsilon * noise
        return float(ndtr(left) - math.exp(epsilon + log_ndtr(right)) - delta)

    return 0.0 if exceed(0.0) <= 0 else float(brentq(exceed, 0.0, _MOST))


def compose_strongly(noise: float, rate: float, iterations: int, delta: float) -> float:
    """Compute epsilon of all iterations by strong composition, at the best split of ``delta``."""
    found = []
    for share in _SPLITS:
        single = compute_single_epsilon(noise, share * delta / (iterations * rate))
        sampled = math.log1p(rate * math.expm1(single))
        slack = math.sqrt(2 * iterations * math.log(1 / ((1 - share) * delta)))
        found.append(slack * sampled + iterations * sampled * math.expm1(sampled))
    return min(found)


def list_lines(*, quick: bool) -> Iterator[Line]:
    """Compute the costs of all settings."""
    for model, batch, rows, noise in SETTINGS[::6] if quick else SETTINGS:
        rate, iterations = batch / rows, rows // batch
        events = encode([(PoissonSampledEvent(rate, GaussianEvent(noise)), iterations)])
        accountant = compute_cost(events, DELTA)
        needed = brentq(_miss, noise, 100 * noise, (rate, iterations, accountant), xtol=1e-3)
        strong = compose_strongly(noise, rate, iterations, DELTA)
        yield Line(model, batch, iterations, rate, noise, accountant, strong, float(needed))


def _miss(noise: float, rate: float, iterations: int, target: float) -> float:
    return compose_strongly(noise, rate, iterations, DELTA) - target


def measure(path: Path, *, quick: bool) -> None:
    """Compute the costs."""
    write_lines(path, list(list_lines(quick=quick)), Line)


def draw(path: Path, picture: Path) -> None:
    """Draw the costs of both ways by noise, for each batch of documents."""
    lines = [line for line in read_lines(path, Line) if line.model == TOPICS]
    with open_figure(picture, "Cost of private topics", (6.0, 3.9)) as (_, (axes,)):
        for place, batch in enumerate(sorted({line.batch for line in lines})):
            chosen = [line for line in lines if line.batch == batch]
            noises = [line.noise for line in chosen]
            axes.plot(noises, [line.strong for line in chosen], "s--", color=f"C{place}", lw=1, ms=4)
            label = f"batches of {batch:,}"
            axes.plot(noises, [line.accountant for line in chosen], "o-", color=f"C{place}", lw=1, ms=4, label=label)
        axes.plot([], [], "s--", color="grey", label="strong composition")
        axes.set(xlabel="noise multiplier", ylabel=f"ε at δ = {DELTA:g}", yscale="log")
        axes.legend(frameon=False)


def tabulate(path: Path) -> str:
    """Show all costs."""
    head = ["model", "batch", "iterations", "noise", "published ε", "ε here", "strong composition", "noise it needs"]
    rows = [
        [
            line.model,
            f"{line.batch:,}",
            str(line.iterations),
            f"{line.noise:g}",
            f"{PUBLISHED[key]:g}" if (key := (line.model, line.batch, line.noise)) in PUBLISHED else "–",
            format_number(line.accountant),
            format_number(line.strong),
            format_number(line.needed),
        ]
        for line in read_lines(path, Line)
    ]
    return render_rows(head, rows)


STUDY: Final = Study(
    "composition",
    "Moments accountant and strong composition",
    "The published runs of private topics (400,000 articles) and of belief networks (60,000 digits), one pass over the "
    f"rows each, at δ = {DELTA:g}. *ε here* is the price of the ledger's accountant. *Noise it needs*: the noise "
    "multiplier at which strong composition states the same ε. The paper does not state the δ of its values.",
    measure,
    draw,
    tabulate,
)
