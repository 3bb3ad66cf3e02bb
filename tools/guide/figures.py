"""Draws the figures of explanations: ``make figures``. The numbers come from the code that prices jobs."""

from pathlib import Path
from typing import Final

import matplotlib as mpl
from matplotlib import pyplot as plt

from app.privacy.accounting import compute_cost
from app.privacy.calibration import calibrate
from app.privacy.events import GaussianEvent, SelfComposedEvent
from app.privacy.risk import bound_true_positives, compute_odds

FOLDER: Final = Path(__file__).resolve().parents[2] / "docs" / "explanation"
DELTA: Final = 1e-6
"""The default of a dataset."""
FALSE_POSITIVES: Final = 0.01
STYLE: Final = {
    "svg.hashsalt": "corevault",
    "svg.fonttype": "none",
    "font.size": 10,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "figure.facecolor": "white",
}


mpl.use("svg")
mpl.rcParams.update(STYLE)  # type: ignore[arg-type]  # the types of matplotlib list every name


def compose_jobs(epsilon: float, jobs: int) -> float:
    """Compute the epsilon of several jobs together, each of which costs ``epsilon`` alone."""
    noise = calibrate(lambda sigma: [GaussianEvent(sigma)], epsilon, DELTA)
    return compute_cost([SelfComposedEvent(GaussianEvent(noise), jobs)], DELTA)


def draw_composition(path: Path, epsilon: float = 0.3, most: int = 40) -> None:
    """Draw the cost of equal jobs together, and the sum of their costs."""
    counts = list(range(1, most + 1))
    _, axes = plt.subplots(figsize=(5.4, 3))
    axes.plot(counts, [epsilon * count for count in counts], "--", color="0.5", label="sum of the costs")
    axes.plot(counts, [compose_jobs(epsilon, count) for count in counts], color="#0b57d0", label="cost together")
    axes.axhline(2.0, color="#b3261e", linewidth=0.8)
    axes.text(most * 0.55, 2.05, "a limit of 2", va="bottom", color="#b3261e")
    axes.set(xlabel=f"jobs of ε = {epsilon} each", ylabel="ε", ylim=(0, 6), xlim=(0, most))
    axes.legend(frameon=False, loc="upper left")
    _save(path)


def draw_power(path: Path) -> None:
    """Draw the rate of true positives of the best attack that the guarantee allows."""
    budgets = [step / 20 for step in range(121)]
    powers = [bound_true_positives(FALSE_POSITIVES, epsilon, DELTA) for epsilon in budgets]
    _, axes = plt.subplots(figsize=(5.4, 3))
    axes.plot(budgets, powers, color="#0b57d0")
    axes.axhline(FALSE_POSITIVES, linestyle="--", color="0.5")
    axes.text(6, 0.03, "a guess, without any release", ha="right", color="0.4")
    axes.set(xlabel="limit ε", ylabel="true positives, at most", ylim=(0, 1), xlim=(0, 6))
    _save(path)


def list_risks(epsilons: tuple[float, ...] = (0.1, 0.5, 1.0, 2.0, 4.0, 8.0)) -> list[tuple[float, float, float]]:
    """List limits with the odds and the rate of true positives that they allow."""
    return [(each, compute_odds(each), bound_true_positives(FALSE_POSITIVES, each, DELTA)) for each in epsilons]


def _save(path: Path) -> None:
    plt.tight_layout()
    plt.savefig(path, metadata={"Date": None})
    plt.close()


if __name__ == "__main__":
    draw_composition(FOLDER / "composition.svg")
    draw_power(FOLDER / "power.svg")
