"""Comparison of the posteriors from pseudocoresets with that of the full training table."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from corevault import Gaussian, Pseudocoreset, logistic_laplace
from numpy.typing import NDArray

from demo import table
from demo.failure import demand

Array = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Comparison:
    """Posteriors of the same coefficients.

    Each has its KL to ``full`` in nats, and its accuracy on held-out rows.
    """

    full: Gaussian
    single: list[Gaussian]
    pooled: Gaussian
    prior_kl: float
    single_kl: list[float]
    pooled_kl: float
    accuracy: dict[str, float]


def compare(cores: Sequence[Pseudocoreset], tables: table.Tables) -> Comparison:
    """Fits all posteriors.

    Raises ``DemoFailed`` unless every release is closer to the full table's posterior than the prior is.
    """
    first = cores[0]
    target = tables.train[table.TARGET].to_numpy(dtype=np.float64)
    full = logistic_laplace(
        first.design_matrix(tables.train), target, prior_scale=first.prior_scale, names=first.columns
    )
    single = [core.laplace(noise=False) for core in cores]
    pooled = pool(cores)
    prior_kl = Gaussian.prior(first.columns, first.prior_scale).kl(full)
    kls = [belief.kl(full) for belief in single]
    demand(max(kls) < prior_kl, "A release's posterior is not closer to the full table's than the prior is.")
    return Comparison(
        full, single, pooled, prior_kl, kls, pooled.kl(full), _accuracies(first, tables, full, single, pooled)
    )


def pool(cores: Sequence[Pseudocoreset]) -> Gaussian:
    """The posterior of all releases together, from the mean of their log-likelihoods.

    The mean reduces their noise. It is post-processing of releases, which has no further privacy cost.
    """
    labels = [core.y for core in cores if core.y is not None]
    weight = np.concatenate([core.weight for core in cores]) / len(cores)
    points, first = np.vstack([core.u for core in cores]), cores[0]
    return logistic_laplace(points, np.concatenate(labels), weight, prior_scale=first.prior_scale, names=first.columns)


def _accuracies(
    core: Pseudocoreset, tables: table.Tables, full: Gaussian, single: Sequence[Gaussian], pooled: Gaussian
) -> dict[str, float]:
    x = core.design_matrix(tables.held_out)
    labels = tables.held_out[table.TARGET].to_numpy(dtype=np.float64) == 1
    beliefs = {"full table": full, "first release": single[0], "all releases": pooled}
    shares = {name: float(np.mean((belief.predict_probability(x) > 0.5) == labels)) for name, belief in beliefs.items()}
    return shares | {"always the majority": float(max(np.mean(labels), 1 - np.mean(labels)))}
