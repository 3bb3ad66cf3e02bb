"""Calibration of the ``trusted`` flag: ``make trust``.

Runs random tables of every kind in the property tests, most of them degenerate, at noise multipliers from 1 to 70. Each
release is compared with the full posterior, which the service never computes. Noise is rounded floating point, and all
random numbers follow the seed, so that a bad table can be run again.
"""

import os

os.environ |= {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}

import argparse
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from benchmarks import trust_page
from benchmarks.environment import PAGES, describe_environment
from benchmarks.figures import write_lines
from benchmarks.sources import RoundedNoise
from support.surrogate_tables import DESIGNS, SIGNALS, Case, build, compute_losses

TABLES: Final = {"labels": 900, "numbers": 400}
_FAMILIES: Final = {
    "labels": {"logistic-regression": 0.7, "probit-regression": 0.2, "multinomial-logistic": 0.1},
    "numbers": {"linear-regression": 0.4, "poisson-regression": 0.4, "gaussian-mean": 0.2},
}
_TAILED: Final = ("rare", "uniform", "heavy tails")
"""Designs whose rows inform about every column. They are a third of the tables, and a share of the others."""
_OF_TAILED: Final = 0.35
_OF_SIGNALS: Final = (0.3, 0.45, 0.1, 0.15)
_SLOTS: Final = {300: 0.2, 2_000: 0.3, 20_000: 0.5}
_SIGMAS: Final = (70.0, 20.0, 9.0, 4.2, 2.2, 1.0)
_LAWS, _COINS, _NOISE = 1, 2, 3
"""Streams of a table's law, of the release's random choices and of its noise. The seed itself is the rows' stream."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """One release, with its stated ``noise_kl``.

    ``kl`` is from its posterior to the full one, in nats.
    """

    targets: str
    seed: int
    family: str
    design: str
    signal: str
    features: int
    slots: int
    rows: int
    sigma: float
    kl: float
    noise_kl: float
    trusted: bool


def draw_case(targets: str, seed: int) -> tuple[Case, float]:
    """A table with targets of a kind, and the noise multiplier of its release."""
    rng = np.random.default_rng((seed, list(TABLES).index(targets), _LAWS))

    def one_of(law: dict[Any, float]) -> Any:
        return list(law)[rng.choice(len(law), p=list(law.values()))]

    design = str(rng.choice(_TAILED)) if rng.random() < _OF_TAILED else str(rng.choice(list(DESIGNS)))
    slots, features = one_of(_SLOTS), int(rng.choice([1, 3, 9]))
    rows, signal = int(slots * rng.choice([1.0, 0.9, 0.5])), str(rng.choice(SIGNALS, p=_OF_SIGNALS))
    return Case(one_of(_FAMILIES[targets]), design, signal, features, rows, slots, seed), float(rng.choice(_SIGMAS))


def release(targets: str, seed: int) -> Outcome:
    """The outcome of the release of a table."""
    case, sigma = draw_case(targets, seed)
    coins = int(np.random.SeedSequence((seed, _COINS)).generate_state(1)[0])
    points = build(case, case.plan(sigma), RoundedNoise(np.random.default_rng((seed, _NOISE))), coins)
    with warnings.catch_warnings(action="ignore"):
        kl, _ = compute_losses(case, points)
    case_fields = {name: getattr(case, name) for name in ("family", "design", "signal", "features", "slots", "rows")}
    stated = {name: points.diagnostics[name] for name in ("noise_kl", "trusted")}
    return Outcome(targets, seed, **case_fields, sigma=sigma, kl=kl, **stated)


def measure_outcomes(tables: dict[str, int]) -> Iterator[Outcome]:
    """The outcomes of ``tables[kind]`` tables of each kind."""
    return (release(targets, seed) for targets, count in tables.items() for seed in range(count))


def main() -> None:
    """Runs all tables, then writes figures, picture and page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tables", type=int, help="run this number of tables of each kind, and write nothing")
    few = parser.parse_args().tables
    results = list(measure_outcomes(dict.fromkeys(TABLES, few) if few else TABLES))
    text = trust_page.render_page(results, describe_environment())
    print(text)
    if not few:
        write_lines(PAGES / "trust.csv", results)
        trust_page.draw(results, PAGES / "trust.png")
        (PAGES / "trust.md").write_text(text)


if __name__ == "__main__":
    main()
