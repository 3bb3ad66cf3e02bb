"""Degenerate targets: the fit returns finite points and a valid divergence."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.inference.core.design import Design
from app.inference.core.designs.columns import ColumnEncoder
from app.inference.core.facts import Column
from app.inference.core.model import Array64, Model
from app.inference.core.priors import HierarchicalPrior, NormalPrior, Prior
from app.inference.core.release import DesignColumn
from app.inference.fitting.fit import fit_points
from app.inference.models.logistic import LogisticRegression
from app.inference.models.poisson import PoissonRegression
from app.inference.models.probit import ProbitRegression

KINDS = ["plain", "zero", "rank one", "indefinite", "not finite", "huge", "graded", "prior", "negative"]


def make_precision(kind: str, width: int, scale: float, rng: np.random.Generator) -> Array64:
    a = rng.standard_normal((width, width))
    return {
        "plain": scale * a @ a.T,
        "zero": np.zeros((width, width)),
        "rank one": scale * np.outer(a[0], a[0]),
        "indefinite": scale * (a + a.T),
        "not finite": np.where(a > 0, np.nan, np.inf),
        "huge": 1e200 * a @ a.T,
        "graded": a @ np.diag(10.0 ** rng.uniform(-12, 12, width)) @ a.T,
        "prior": np.eye(width),
        "negative": -scale * np.eye(width),
    }[kind]


def make_design(width: int) -> Design:
    encoders = tuple(ColumnEncoder(Column(f"x{index}", "real", -1.0, 1.0)) for index in range(width - 1))
    columns = [column for encoder in encoders for column in encoder.columns]
    return Design(encoders, None, (*columns, DesignColumn("intercept", None, {"kind": "constant"})))


@pytest.mark.slow
@settings(max_examples=30, deadline=None)
@given(
    kind=st.sampled_from(KINDS),
    width=st.integers(1, 5),
    size=st.integers(1, 9),
    powers=st.tuples(st.integers(-8, 12), st.integers(-6, 5), st.integers(-3, 3)),
    hierarchical=st.booleans(),
    within_bounds=st.booleans(),
    total=st.sampled_from([None, 100.0]),
    seed=st.integers(0, 10**6),
)
def test_points_are_finite_for_every_target(
    kind: str,
    width: int,
    size: int,
    powers: tuple[int, int, int],
    hierarchical: bool,
    within_bounds: bool,
    total: float | None,
    seed: int,
) -> None:
    rng = np.random.default_rng(seed)
    scales = 10.0 ** powers[2] * rng.uniform(0.5, 2, width)
    prior: Prior = HierarchicalPrior(scales, 3.0) if hierarchical else NormalPrior(scales)
    model: Model = (LogisticRegression(width), ProbitRegression(width), PoissonRegression(width, 0, 9))[seed % 3]
    mean = 10.0 ** powers[1] * rng.standard_normal(width)
    precision = make_precision(kind, width, 10.0 ** powers[0], rng)
    found = fit_points(
        model, make_design(width), prior, mean, precision, size, rng, within_bounds=within_bounds, total=total
    )
    assert found.u.shape == (size, width)
    assert found.y is not None
    assert all(np.all(np.isfinite(part)) for part in (found.u, found.y, found.weight))
    assert np.all(found.u[:, -1] == 1)
    assert np.all(found.weight >= 0)
    assert not within_bounds or np.all(np.abs(found.u) <= 1)
    assert np.isfinite(found.kl)
    assert found.kl >= 0


def test_a_mean_that_is_not_finite_is_replaced_by_the_priors() -> None:
    mean = np.array([np.nan, np.inf, 0.5])
    found = fit_points(
        LogisticRegression(3),
        make_design(3),
        NormalPrior(np.ones(3)),
        mean,
        50 * np.eye(3),
        8,
        np.random.default_rng(0),
    )
    assert found.kl == pytest.approx(0, abs=1e-12)
