"""How far DP-PSVI's posterior is from the full one, at untuned defaults: ``make quality``.

KL between Laplace approximations, coreset against full data, in nats and as a share of the prior's; median of five
runs. Noise is rounded floating point, which has the same effect on quality as the discrete Gaussian and is faster.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table
from scipy.special import expit

from app.inference.laplace import Laplace, laplace
from app.inference.models.logistic import LogisticRegression
from app.inference.oracle import ClippedGaussianOracle
from app.inference.priors import NormalPrior
from app.inference.protocol import Array64, PlanRequest
from app.inference.registry import method, model_for
from app.inference.rng import monte_carlo_generator, sampling_generator
from app.inference.runner import run
from app.privacy.calibration import calibrate
from benchmarks.measures import divergence
from benchmarks.sources import TARGET, ArrayRows, RoundedNoise, facts, spec

SHARED = Path(__file__).resolve().parents[2] / "shared" / "data"
EPSILONS = (0.3, 1.0, 2.0)
SIZE, RUNS, SPARE_SLOTS = 50, 5, 1.02


@dataclass(frozen=True)
class DataSet:
    """Features in [-1, 1], ``(n, d)``, and labels 0 or 1."""

    name: str
    x: Array64
    y: Array64

    @property
    def slots(self) -> int:
        """Slots with a few to spare."""
        return int(len(self.y) * SPARE_SLOTS)


def posterior(x: Array64, y: Array64, weights: Array64) -> Laplace:
    """The Laplace approximation on weighted design rows."""
    model = LogisticRegression(x.shape[1])
    rows: NDArray[np.float64] = model.fold(x, y)
    return laplace(model, rows, weights, NormalPrior(np.ones(x.shape[1])), np.zeros(x.shape[1]))


def data_sets() -> Iterator[DataSet]:
    """Synthetic designs, plain and heavy-tailed, and what data lies beside the repository."""
    rng = np.random.default_rng(0)
    for n, d in ((20_000, 9), (50_000, 30)):
        yield _simulated(f"normal {n:,} x {d}", np.clip(rng.standard_normal((n, d)) / 3, -1, 1), rng)
    heavy = np.clip(rng.standard_t(2.5, (30_000, 12)) / 20, -1, 1)
    heavy[:, 8:] = np.where(rng.random((30_000, 4)) < (0.3, 0.1, 0.02, 0.005), 1.0, -1.0)
    yield _simulated("heavy-tailed 30,000 x 12", heavy, rng)
    phishing = SHARED / "phishing.npz"
    if phishing.exists():
        with np.load(phishing) as arrays:
            yield DataSet(
                "phishing 500 x 10", np.clip(arrays["X"][:, :-1], -1, 1), (arrays["y"] > 0).astype(np.float64)
            )


def _simulated(name: str, x: Array64, rng: np.random.Generator) -> DataSet:
    theta = rng.standard_normal(x.shape[1]) * 2
    y = (rng.random(len(x)) < expit(x @ theta - 0.5)).astype(np.float64)
    return DataSet(name, x, y)


def one_run(data: DataSet, epsilon: float) -> Laplace:
    """The posterior of one private pseudocoreset at the defaults."""
    features = data.x.shape[1]
    declared, dp_psvi = facts(features, data.slots), method("dp-psvi")

    def request(noise: float) -> PlanRequest:
        return PlanRequest("dp-psvi", SIZE, spec(features), noise_multiplier=noise)

    noise = calibrate(lambda candidate: dp_psvi.plan(request(candidate), declared).events, epsilon, 1e-6)
    plan = dp_psvi.plan(request(noise), declared)
    rng = monte_carlo_generator()
    oracle = ClippedGaussianOracle(
        model_for(spec(features), declared).model,
        plan,
        declared,
        ArrayRows(data.x, data.y, data.slots),
        noise=RoundedNoise(rng),
        sampling=sampling_generator(),
    )
    points = run(plan, declared, oracle, rng, lambda _: None)
    if points.y is None:
        raise ValueError(f"{TARGET} is missing")
    return posterior(points.u, points.y, points.weight)


def main() -> None:
    """Print the table."""
    table = Table(title=f"KL to the full posterior, M={SIZE}, median (worst) of {RUNS}")
    table.add_column("data")
    table.add_column("prior", justify="right")
    for epsilon in EPSILONS:
        table.add_column(f"ε={epsilon:g}", justify="right")
        table.add_column("share", justify="right")
    for data in data_sets():
        width = data.x.shape[1] + 1
        exact = posterior(np.c_[data.x, np.ones(len(data.x))], data.y, np.ones(len(data.y)))
        prior = divergence(Laplace(np.zeros(width), np.eye(width)), exact)
        cells = []
        for epsilon in EPSILONS:
            found = [divergence(one_run(data, epsilon), exact) for _ in range(RUNS)]
            cells += [f"{np.median(found):.0f} ({max(found):.0f})", f"{np.median(found) / prior:.4f}"]
        table.add_row(data.name, f"{prior:.0f}", *cells)
    Console(width=110).print(table)


if __name__ == "__main__":
    main()
