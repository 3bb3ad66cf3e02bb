"""Kinds of tables whose targets do not follow the family of the model."""

from collections.abc import Callable
from functools import partial
from typing import Final

import numpy as np
from scipy.special import expit, ndtr

from app.inference.core.model import Array64
from benchmarks.tables.columns import draw_features
from benchmarks.tables.drawn import Drawn, Features, Target, compute_coordinates
from benchmarks.tables.targets import (
    GAUSSIAN,
    LINEAR,
    LOGISTIC,
    MOST_LOG_RATE,
    POISSON,
    PROBIT,
    draw_direction,
    draw_labels,
    draw_limited_log_rates,
    draw_log_rates,
    draw_logits,
    draw_scale,
    draw_varied_counts,
    make_counts,
    make_labels,
    make_number,
    make_tailed_number,
    make_varied_counts,
    standardise,
)
from benchmarks.tables.well_behaved import Draw, draw_means, finish

_SHARE_OF_OUTLIERS: Final = 0.01
_LINKS: Final[dict[str, Callable[[Array64], Array64]]] = {
    "normal": lambda a: np.asarray(ndtr(a)),
    "logistic": lambda a: np.asarray(expit(a)),
    "Cauchy": lambda a: 0.5 + np.arctan(a) / np.pi,
    "log-log": lambda a: -np.expm1(-np.exp(np.minimum(a, 5))),
    "bounded": lambda a: 0.1 + 0.8 * np.asarray(expit(2 * a)),
}


def _draw_negative_binomial(rng: np.random.Generator) -> Drawn:
    features, shape = draw_features(rng), float(rng.choice([0.3, 1.0, 3.0]))
    rates = np.exp(draw_log_rates(rng, draw_direction(rng, features)))
    counts = draw_varied_counts(rng, rates, 1 / shape)
    return finish(rng, "negative binomial counts", f"shape {shape:g}", features, make_counts(rng, counts))


def _draw_other_counts(rng: np.random.Generator) -> Drawn:
    """Negative binomial regression of other counts: of another dispersion, or with added zeros."""
    features, law = draw_features(rng), str(rng.choice(["Poisson", "less", "more", "zeros"]))
    rates, stated = np.exp(draw_log_rates(rng, draw_direction(rng, features))), float(rng.choice([0.3, 1.0, 3.0]))
    dispersion = stated * {"Poisson": 0.0, "less": 0.3, "more": 3.0, "zeros": 1.0}[law]
    counts = draw_varied_counts(rng, rates, dispersion) if dispersion else rng.poisson(rates).astype(np.float64)
    if law == "zeros":
        counts[rng.random(len(counts)) < rng.uniform(0.1, 0.9)] = 0
    what = f"{law}, stated dispersion {stated:g}"
    return finish(rng, "negative binomial, other counts", what, features, make_varied_counts(rng, counts, stated))


def _draw_other_tails(rng: np.random.Generator) -> Drawn:
    """Student-t regression of residuals of other laws, or with heavier tails than stated."""
    features, scale, known = draw_features(rng), draw_scale(rng), rng.random() < 0.5
    n, law = features.rows, str(rng.choice(["normal", "exponential", "outliers", "t(3)"]))
    degrees = float(rng.choice([10, 30, 100] if law == "t(3)" else [2, 4]))
    residuals = rng.standard_t(3, n) if law == "t(3)" else rng.standard_normal(n)
    if law == "exponential":
        residuals = rng.exponential(size=n) - 1
    if law == "outliers":
        residuals += 20.0 * (rng.random(n) < _SHARE_OF_OUTLIERS)
    values = scale.shift + scale.unit * (draw_direction(rng, features) + scale.noise * residuals)
    target = make_tailed_number(rng, values, scale.noise_scale if known else None, degrees)
    return finish(rng, "Student's t, other residuals", f"{law}, {degrees:g} degrees", features, target)


def _draw_limited(rng: np.random.Generator) -> Drawn:
    """Poisson counts whose rates stop to rise: rows in the tails do not follow the model."""
    features = draw_features(rng)
    rates = np.exp(draw_limited_log_rates(rng, draw_direction(rng, features)))
    counts = make_counts(rng, rng.poisson(rates).astype(np.float64))
    return finish(rng, "limited rates", f"at most {np.exp(MOST_LOG_RATE):.0f}", features, counts)


def _draw_zero_inflated(rng: np.random.Generator) -> Drawn:
    features, share = draw_features(rng), float(rng.uniform(0.1, 0.9))
    counts = rng.poisson(np.exp(draw_log_rates(rng, draw_direction(rng, features)))).astype(np.float64)
    counts[rng.random(len(counts)) < share] = 0
    return finish(rng, "zero-inflated counts", f"{share:.0%} zeros added", features, make_counts(rng, counts))


def _draw_residuals(rng: np.random.Generator, kind: str, law: str, *, known: bool) -> Drawn:
    """Linear regression with other residuals; a known scale is their spread, or that of their centre."""
    features, scale = draw_features(rng), draw_scale(rng)
    n = features.rows
    residuals = rng.standard_t(3, n) if law == "t(3)" else rng.exponential(size=n) - 1
    values = scale.shift + scale.unit * (draw_direction(rng, features) + scale.noise * residuals)
    stated = scale.noise_scale * (np.sqrt(3) if law == "t(3)" and rng.random() < 0.5 else 1.0)
    return finish(rng, kind, "", features, make_number(rng, values, float(stated) if known else None))


def _draw_outliers(rng: np.random.Generator) -> Drawn:
    """One value in a hundred is far away, to one side or to both."""
    features, scale, known = draw_features(rng), draw_scale(rng), rng.random() < 0.5
    n, distance = features.rows, float(rng.choice([5.0, 20.0, 100.0]))
    sides = np.ones(n) if rng.random() < 0.5 else rng.choice([-1.0, 1.0], n)
    residuals = rng.standard_normal(n) + distance * sides * (rng.random(n) < _SHARE_OF_OUTLIERS)
    values = scale.shift + scale.unit * (draw_direction(rng, features) + scale.noise * residuals)
    what = f"1 % at {distance:g} sd, noise {'known' if known else 'unknown'}"
    return finish(rng, "outliers", what, features, make_number(rng, values, scale.noise_scale if known else None))


def _draw_heteroscedastic(rng: np.random.Generator) -> Drawn:
    features, scale, known = draw_features(rng), draw_scale(rng), rng.random() < 0.5
    direction, growth = draw_direction(rng, features), float(rng.choice([0.5, 1.0]))
    spread = np.exp(np.clip(growth * draw_direction(rng, features), -3, 3))
    residuals = spread * rng.standard_normal(len(direction))
    values = scale.shift + scale.unit * (direction + scale.noise * residuals)
    what = f"log sd {growth:g}, noise {'known' if known else 'unknown'}"
    return finish(
        rng, "heteroscedastic noise", what, features, make_number(rng, values, scale.noise_scale if known else None)
    )


def _draw_omitted_curve(rng: np.random.Generator) -> Drawn:
    """The mean has a square, a step or a product that the model lacks."""
    features, curve = draw_features(rng), str(rng.choice(["square", "step", "product"]))
    family = str(rng.choice([LOGISTIC, LINEAR, POISSON]))
    size, direction = float(rng.choice([0.3, 1.0])), draw_direction(rng, features)
    bent = direction + size * standardise(_draw_curve(rng, features, curve, direction))
    return finish(rng, "omitted curve", f"{curve} of size {size:g}, {family}", features, _observe(rng, family, bent))


def _draw_curve(rng: np.random.Generator, features: Features, curve: str, direction: Array64) -> Array64:
    if curve == "square":
        return np.clip(direction, -4, 4) ** 2
    if curve == "step":
        return np.asarray((direction > rng.normal()) * 1.0)
    x = compute_coordinates(features)
    one, other = (standardise(x[:, place]) for place in rng.integers(0, x.shape[1], 2))
    return np.clip(one * other, -10, 10)


def _observe(rng: np.random.Generator, family: str, direction: Array64) -> Target:
    if family == LOGISTIC:
        return make_labels(family, draw_labels(rng, family, draw_logits(rng, direction)))
    if family == POISSON:
        return make_counts(rng, rng.poisson(np.exp(draw_log_rates(rng, direction))).astype(np.float64))
    scale = draw_scale(rng)
    values = scale.shift + scale.unit * (direction + scale.noise * rng.standard_normal(len(direction)))
    return make_number(rng, values, scale.noise_scale if rng.random() < 0.5 else None)


def _draw_wrong_labels(rng: np.random.Generator, kind: str, share: float) -> Drawn:
    features, family = draw_features(rng), str(rng.choice([LOGISTIC, PROBIT]))
    labels = draw_labels(rng, family, draw_logits(rng, draw_direction(rng, features)))
    wrong = rng.random(len(labels)) < share
    return finish(rng, kind, family, features, make_labels(family, np.where(wrong, 1 - labels, labels)))


def _draw_other_link(rng: np.random.Generator) -> Drawn:
    """Labels by the normal, Cauchy, complementary log-log or a bounded logistic link."""
    features, family = draw_features(rng), str(rng.choice([LOGISTIC, PROBIT]))
    link = str(rng.choice(["normal" if family == LOGISTIC else "logistic", "Cauchy", "log-log", "bounded"]))
    logits = draw_logits(rng, draw_direction(rng, features))
    p = _LINKS[link](logits)
    return finish(
        rng, "another link", f"{link}, {family}", features, make_labels(family, (rng.random(len(p)) < p) * 1.0)
    )


def _draw_heavy_means(rng: np.random.Generator) -> Drawn:
    """Columns with tails, or a stated noise that is far from the true one."""
    features, s = draw_means(rng)
    factor, law = float(rng.choice([1.0, 3.0, 0.3])), str(rng.choice(["normal", "t(3)"]))
    if law == "t(3)":
        tailed = []
        for values in features.values:
            spread = float(values.std())
            tailed.append(values.mean() + spread * rng.standard_t(3, len(values)))
        features = Features("heavy tails", features.columns, tuple(tailed))
    what = f"{law}, stated noise {factor:g} times the true"
    return finish(rng, "Gaussian mean, other noise", what, features, Target(GAUSSIAN, None, np.empty(0), s * factor))


def _make_residuals(law: str, *, known: bool) -> tuple[str, Draw]:
    kind = f"{law} residuals, {'known' if known else 'unknown'} scale"
    return kind, partial(_draw_residuals, kind=kind, law=law, known=known)


def _make_wrong(share: float) -> tuple[str, Draw]:
    kind = f"wrong labels, {100 * share:g} %"
    return kind, partial(_draw_wrong_labels, kind=kind, share=share)


MISFITS: Final[dict[str, Draw]] = {
    "negative binomial counts": _draw_negative_binomial,
    "negative binomial, other counts": _draw_other_counts,
    "Student's t, other residuals": _draw_other_tails,
    "zero-inflated counts": _draw_zero_inflated,
    "limited rates": _draw_limited,
    **dict(_make_residuals(law, known=known) for law in ("t(3)", "exponential") for known in (True, False)),
    "outliers": _draw_outliers,
    "heteroscedastic noise": _draw_heteroscedastic,
    "omitted curve": _draw_omitted_curve,
    **dict(_make_wrong(share) for share in (0.01, 0.05, 0.2)),
    "another link": _draw_other_link,
    "Gaussian mean, other noise": _draw_heavy_means,
}
