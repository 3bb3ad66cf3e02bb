"""Kinds of tables whose targets follow the family of the model."""

from collections.abc import Callable
from functools import partial
from typing import Final

import numpy as np

from app.inference.core.facts import Column
from benchmarks.tables.columns import draw_features, draw_rows
from benchmarks.tables.drawn import Drawn, Features, Target, assemble, draw_counts, draw_prior, draw_slots
from benchmarks.tables.targets import (
    GAUSSIAN,
    LINEAR,
    LOGISTIC,
    MULTINOMIAL,
    NEGATIVE_BINOMIAL,
    POISSON,
    PROBIT,
    STUDENT_T,
    draw_target,
)

Draw = Callable[[np.random.Generator], Drawn]


def finish(rng: np.random.Generator, kind: str, what: str, features: Features, target: Target) -> Drawn:
    """Draw units, slots and prior, and describe the table."""
    counts, prior = draw_counts(rng, features.rows), draw_prior(rng, features.columns)
    case = assemble(features, target, counts=counts, slots=draw_slots(rng, len(counts)), prior=prior)
    words = [f"{features.rows:,} x {len(features.columns)} {features.design}", what]
    if case.facts.rows_per_unit > 1:
        words.append(f"units of up to {case.facts.rows_per_unit} rows")
    if case.facts.slots > len(counts):
        words.append(f"{case.facts.slots:,} slots")
    return Drawn(kind, "; ".join(filter(None, words)), features.design, case)


def _draw(rng: np.random.Generator, kind: str, family: str, *, known_noise: bool = True) -> Drawn:
    features = draw_features(rng)
    return finish(rng, kind, "", features, draw_target(rng, family, features, known_noise=known_noise))


def draw_means(rng: np.random.Generator) -> tuple[Features, float]:
    """Draw columns ``N(mean, s^2)`` in half ranges of their bounds; the second value is s."""
    rows, s = draw_rows(rng), float(np.exp(rng.uniform(np.log(0.02), np.log(0.3))))
    columns, values = [], []
    for place in range(rng.integers(1, 21)):
        half, center = float(np.exp(rng.uniform(-2, 6))), float(rng.normal() * 50)
        columns.append(Column(f"x{place}", "real", center - half, center + half))
        values.append(center + half * (rng.uniform(-0.4, 0.4) + s * rng.standard_normal(rows)))
    return Features("normal", tuple(columns), tuple(values)), s


def _draw_gaussian_mean(rng: np.random.Generator) -> Drawn:
    features, s = draw_means(rng)
    return finish(rng, "Gaussian mean", "", features, Target(GAUSSIAN, None, np.empty(0), s))


WELL_BEHAVED: Final[dict[str, Draw]] = {
    "logistic": partial(_draw, kind="logistic", family=LOGISTIC),
    "probit": partial(_draw, kind="probit", family=PROBIT),
    "linear, known noise": partial(_draw, kind="linear, known noise", family=LINEAR),
    "linear, unknown noise": partial(_draw, kind="linear, unknown noise", family=LINEAR, known_noise=False),
    "Poisson": partial(_draw, kind="Poisson", family=POISSON),
    "multinomial": partial(_draw, kind="multinomial", family=MULTINOMIAL),
    "negative binomial": partial(_draw, kind="negative binomial", family=NEGATIVE_BINOMIAL),
    "Student's t": partial(_draw, kind="Student's t", family=STUDENT_T),
    "Student's t, unknown scale": partial(
        _draw, kind="Student's t, unknown scale", family=STUDENT_T, known_noise=False
    ),
    "Gaussian mean": _draw_gaussian_mean,
}
