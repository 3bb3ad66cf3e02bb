"""Targets that follow the family of the model, given a linear predictor."""

from dataclasses import dataclass, replace
from typing import Final

import numpy as np
from scipy.special import expit, ndtr

from app.inference.core.facts import Column
from app.inference.core.model import Array64
from benchmarks.tables.drawn import Features, Target, Values, compute_coordinates

LOGISTIC, PROBIT, LINEAR = "logistic-regression", "probit-regression", "linear-regression"
POISSON, MULTINOMIAL, GAUSSIAN = "poisson-regression", "multinomial-logistic", "gaussian-mean"
NEGATIVE_BINOMIAL, STUDENT_T = "negative-binomial-regression", "student-t-regression"
NAME: Final = "y"
LABEL: Final = Column(NAME, "binary")
_SPREADS: Final = {0.3: 0.1, 1.0: 0.35, 1.5: 0.25, 2.5: 0.2, 5.0: 0.1}
_OFFSETS: Final = {0.0: 0.35, 0.7: 0.25, -1.0: 0.2, -2.0: 0.12, -3.0: 0.08}
_WIDER: Final = (1.0, 1.0, 2.0, 5.0)
"""Factors by which the bounds of a target are too wide."""
MOST_LOG_RATE: Final = 7.0
_LEAST_SPREAD: Final = 1e-9
"""Columns with less are constant up to rounding."""


@dataclass(frozen=True, slots=True)
class Scale:
    """The units of a numeric target: ``shift + unit * (predictor + noise * residual)``."""

    unit: float
    shift: float
    noise: float

    @property
    def noise_scale(self) -> float:
        """The standard deviation of the noise, in the target's units."""
        return self.unit * self.noise


def _choose(rng: np.random.Generator, law: dict[float, float]) -> float:
    return float(rng.choice(list(law), p=list(law.values())))


def draw_direction(rng: np.random.Generator, features: Features) -> Array64:
    """Draw a linear predictor ``(n,)`` of mean zero and variance one; zeros if no column varies."""
    x = compute_coordinates(features)
    if not len(x):
        return np.zeros(0)
    center, spread = x.mean(axis=0), x.std(axis=0)
    varies = spread > _LEAST_SPREAD
    truth = rng.standard_normal(x.shape[1]) * varies
    kept = truth * (rng.random(x.shape[1]) < float(rng.choice([0.3, 1.0])))
    return standardise((x - center) / np.where(varies, spread, 1.0) @ (kept if kept.any() else truth))


def standardise(values: Array64) -> Array64:
    """Scale values ``(n,)`` to mean zero and variance one; zeros if they do not vary."""
    spread = float(values.std())
    return (values - values.mean()) / spread if spread > _LEAST_SPREAD else np.zeros(len(values))


def draw_logits(rng: np.random.Generator, direction: Array64) -> Array64:
    """Scale and shift ``direction`` to logits; some labels are rare, some nearly certain."""
    return _choose(rng, _SPREADS) * direction + _choose(rng, _OFFSETS)


def draw_log_rates(rng: np.random.Generator, direction: Array64) -> Array64:
    """Scale and shift ``direction`` to logarithms of rates. Tails lower the slope."""
    slope, shift = _draw_rate(rng)
    most = (MOST_LOG_RATE - shift) / max(float(direction.max(initial=0.0)), _LEAST_SPREAD)
    return min(slope, most) * direction + shift


def draw_limited_log_rates(rng: np.random.Generator, direction: Array64) -> Array64:
    """Draw logarithms of rates that stop to rise at a limit. So tails do not follow the model."""
    slope, shift = _draw_rate(rng)
    return np.minimum(slope * direction + shift, MOST_LOG_RATE)


def _draw_rate(rng: np.random.Generator) -> tuple[float, float]:
    """Draw slope and shift, for rates between 0.2 and 7 on average."""
    return float(rng.choice([0.3, 0.6, 1.0, 1.5])), float(rng.uniform(-1.5, 2.0))


def draw_scale(rng: np.random.Generator) -> Scale:
    """Draw the units and the noise of a numeric target."""
    unit = float(np.exp(rng.uniform(-2, 4)))
    return Scale(unit, unit * rng.uniform(-3, 3), float(rng.choice([0.2, 0.5, 1.0, 3.0])))


def make_labels(family: str, values: Values) -> Target:
    """Make a binary target."""
    return Target(family, LABEL, np.asarray(values, dtype=np.float64))


def make_number(rng: np.random.Generator, values: Array64, noise_scale: float | None) -> Target:
    """Make a numeric target of linear regression, with bounds around its values."""
    lower, upper = (float(values.min()), float(values.max())) if len(values) else (-1.0, 1.0)
    spare = (float(rng.choice(_WIDER)) - 1 + (lower == upper)) * ((upper - lower) / 2 or 1.0)
    return Target(LINEAR, Column(NAME, "real", lower - spare, upper + spare), values, noise_scale)


def make_counts(rng: np.random.Generator, values: Array64) -> Target:
    """Make a target of counts, with an upper bound of at least its values."""
    most = max(float(values.max(initial=1.0)), 1.0)
    upper = float(np.ceil(most * float(rng.choice(_WIDER))))
    return Target(POISSON, Column(NAME, "integer", 0, upper), np.asarray(values, dtype=np.float64))


def draw_varied_counts(rng: np.random.Generator, rates: Values, dispersion: float) -> Values:
    """Draw counts of means ``rates`` ``(n,)`` that vary as negative binomial ones."""
    return rng.poisson(rates * rng.gamma(1 / dispersion, dispersion, len(rates))).astype(np.float64)


def make_varied_counts(rng: np.random.Generator, counts: Values, dispersion: float) -> Target:
    """Make a target of counts for the negative binomial model with a stated ``dispersion``."""
    return replace(make_counts(rng, counts), family=NEGATIVE_BINOMIAL, dispersion=dispersion)


def make_tailed_number(rng: np.random.Generator, values: Array64, noise_scale: float | None, degrees: float) -> Target:
    """Make a numeric target of Student-t regression with stated ``degrees`` of freedom."""
    return replace(make_number(rng, values, noise_scale), family=STUDENT_T, degrees_of_freedom=degrees)


def draw_labels(rng: np.random.Generator, family: str, logits: Array64) -> Array64:
    """Draw labels 0 or 1 that follow the family; ``logits`` are its linear predictors."""
    p = ndtr(logits / 1.7) if family == PROBIT else expit(logits)
    return np.asarray((rng.random(len(logits)) < p) * 1.0)


def draw_classes(rng: np.random.Generator, features: Features) -> Target:
    """Draw a categorical target of three to five classes that follows the multinomial model."""
    classes = int(rng.integers(3, 6)) if len(features.columns) <= 15 else 3
    logits = np.column_stack(
        [np.zeros(features.rows)] + [draw_logits(rng, draw_direction(rng, features)) for _ in range(classes - 1)]
    )
    codes = np.argmax(logits + rng.gumbel(size=logits.shape), axis=1)
    return Target(
        MULTINOMIAL, Column(NAME, "categorical", categories=tuple(f"class {k}" for k in range(classes))), codes
    )


def draw_target(rng: np.random.Generator, family: str, features: Features, *, known_noise: bool = True) -> Target:
    """Draw a target that follows ``family``; not for the Gaussian mean, which has none."""
    if family == MULTINOMIAL:
        return draw_classes(rng, features)
    direction = draw_direction(rng, features)
    if family == POISSON:
        return make_counts(rng, rng.poisson(np.exp(draw_log_rates(rng, direction))).astype(np.float64))
    if family == NEGATIVE_BINOMIAL:
        dispersion = float(rng.choice([0.3, 1.0, 3.0]))
        counts = draw_varied_counts(rng, np.exp(draw_log_rates(rng, direction)), dispersion)
        return make_varied_counts(rng, counts, dispersion)
    if family == STUDENT_T:
        scale, degrees = draw_scale(rng), float(rng.choice([2.0, 4.0, 10.0]))
        values = scale.shift + scale.unit * (direction + scale.noise * rng.standard_t(degrees, len(direction)))
        return make_tailed_number(rng, values, scale.noise_scale if known_noise else None, degrees)
    if family == LINEAR:
        scale = draw_scale(rng)
        values = scale.shift + scale.unit * (direction + scale.noise * rng.standard_normal(len(direction)))
        return make_number(rng, values, scale.noise_scale if known_noise else None)
    return make_labels(family, draw_labels(rng, family, draw_logits(rng, direction)))
