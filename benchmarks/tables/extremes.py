"""Kinds of tables at the edge: rare outcomes, separable or saturated labels, and degenerate tables."""

from functools import partial
from typing import Final

import numpy as np
from scipy.special import expit

from app.inference.core.facts import Column
from benchmarks.tables.columns import draw_features, draw_rows
from benchmarks.tables.drawn import Drawn, Features, Target, assemble, draw_prior
from benchmarks.tables.targets import (
    GAUSSIAN,
    LINEAR,
    LOGISTIC,
    MULTINOMIAL,
    NAME,
    POISSON,
    PROBIT,
    draw_direction,
    draw_labels,
    draw_logits,
    draw_target,
    make_labels,
)
from benchmarks.tables.well_behaved import Draw, finish

_FAMILIES: Final = (LOGISTIC, PROBIT, LINEAR, POISSON, MULTINOMIAL)
_LEVEL_SHARE: Final = 0.01


def _draw_rare_outcomes(rng: np.random.Generator, kind: str, positives: int, rows: int) -> Drawn:
    """Exactly ``positives`` labels 1, more likely along a direction."""
    features = draw_features(rng, rows, str(rng.choice(["normal", "rare levels", "categories", "heavy tails"])))
    rows, family = features.rows, str(rng.choice([LOGISTIC, LOGISTIC, PROBIT]))
    logits = float(rng.choice([0.0, 1.0])) * draw_direction(rng, features)
    chosen = np.argsort(-(logits + rng.gumbel(size=rows)))[:positives]
    labels = np.zeros(rows)
    labels[chosen] = 1
    return finish(rng, kind, family, features, make_labels(family, labels))


def _draw_separable(rng: np.random.Generator) -> Drawn:
    features, family = draw_features(rng), str(rng.choice([LOGISTIC, LOGISTIC, PROBIT]))
    labels = draw_direction(rng, features) > rng.normal()
    return finish(rng, "separable labels", family, features, make_labels(family, labels * 1.0))


def _draw_saturated(rng: np.random.Generator) -> Drawn:
    """Labels are certain along a wide amount, except for one row in a hundred."""
    rows = draw_rows(rng, 5_000)
    amount = np.exp(rng.uniform(0.5, 1.5) * rng.standard_normal(rows))
    at = float(rng.uniform(0.3, 0.7))
    low, middle, high = np.quantile(amount, [at - _LEVEL_SHARE / 2, at, at + _LEVEL_SHARE / 2])
    most = float(rng.choice([20.0, 50.0, 200.0]))
    others = draw_features(rng, rows, str(rng.choice(["normal", "categories", "uniform"])))
    logits = 4 * (amount - middle) / (high - low)
    if rng.random() < 0.5:
        logits = logits + draw_direction(rng, others)
    column = Column("amount", "real", 0.0, most)
    features = Features("amount", (column, *others.columns), (amount, *others.values))
    return finish(rng, "saturated labels", "", features, make_labels(LOGISTIC, draw_labels(rng, LOGISTIC, logits)))


def _draw_few_rows(rng: np.random.Generator, kind: str) -> Drawn:
    """Almost all slots are empty."""
    rows = {"empty": 0, "one row": 1}.get(kind, int(rng.integers(2, 20)))
    slots, family = draw_rows(rng, 300, 50_000), str(rng.choice([*_FAMILIES, GAUSSIAN]))
    design = "uniform" if family == GAUSSIAN else str(rng.choice(["normal", "uniform", "categories", "rare levels"]))
    many = draw_features(rng, 100, design)
    target = Target(GAUSSIAN, None, np.empty(0), 0.2) if family == GAUSSIAN else draw_target(rng, family, many)
    few = Features(design, many.columns, tuple(values[:rows] for values in many.values))
    kept = Target(family, target.column, target.values[:rows], target.noise_scale)
    case = assemble(few, kept, counts=np.ones(rows, dtype=np.int64), slots=slots, prior=draw_prior(rng, few.columns))
    return Drawn(kind, f"{rows} of {slots:,} slots, {len(few.columns)} {design}; {family}", design, case)


def _draw_all_alike(rng: np.random.Generator) -> Drawn:
    features, family = draw_features(rng), str(rng.choice([LOGISTIC, PROBIT, MULTINOMIAL]))
    value = int(rng.integers(0, 2))
    if family == MULTINOMIAL:
        column = Column(NAME, "categorical", categories=("class 0", "class 1", "class 2"))
        target = Target(family, column, np.full(features.rows, value))
    else:
        target = make_labels(family, np.full(features.rows, float(value)))
    return finish(rng, "all one label", f"all {value}, {family}", features, target)


def _draw_constant_target(rng: np.random.Generator) -> Drawn:
    features, family = draw_features(rng), str(rng.choice([LINEAR, LINEAR, POISSON]))
    if family == POISSON:
        value = float(rng.choice([0.0, 1.0, 20.0]))
        target = Target(family, Column(NAME, "integer", 0, 40.0), np.full(features.rows, value))
        return finish(rng, "constant target", f"all {value:g}, {family}", features, target)
    value, known = float(rng.choice([0.0, 0.3, 1.0])), rng.random() < 0.5
    target = Target(family, Column(NAME, "real", -1.0, 1.0), np.full(features.rows, value), 0.2 if known else None)
    what = f"all {value:g}, noise {'known' if known else 'unknown'}"
    return finish(rng, "constant target", what, features, target)


def _draw_noise_labels(rng: np.random.Generator) -> Drawn:
    """Labels are independent of all columns."""
    features, family = draw_features(rng), str(rng.choice([LOGISTIC, PROBIT]))
    p = expit(draw_logits(rng, np.zeros(features.rows)))
    return finish(rng, "labels of noise", family, features, make_labels(family, (rng.random(len(p)) < p) * 1.0))


def _make_rare(positives: int, rows: int) -> tuple[str, Draw]:
    kind = f"{positives} positives in {rows:,}"
    return kind, partial(_draw_rare_outcomes, kind=kind, positives=positives, rows=rows)


RARE: Final[dict[str, Draw]] = {
    **dict([_make_rare(20, 20_000), _make_rare(2, 100_000)]),
    "separable labels": _draw_separable,
    "saturated labels": _draw_saturated,
    "labels of noise": _draw_noise_labels,
}
DEGENERATE: Final[dict[str, Draw]] = {
    **{kind: partial(_draw_few_rows, kind=kind) for kind in ("empty", "nearly empty", "one row")},
    "all one label": _draw_all_alike,
    "constant target": _draw_constant_target,
}
