"""Parts of the surrogate lower the divergence on the tables they are for.

These are measurements of whole runs with and without the part, with fixed seeds, a few seconds each. ``make
quality-checks`` runs them.
"""

from collections.abc import Sequence

import numpy as np
import pytest
from scipy.special import expit

from app.inference.core.model import Array64
from app.inference.core.plan import MechanismPlan
from app.inference.methods.surrogate import first_bearing, rounds, score_metric
from app.inference.methods.surrogate.disputed import Places
from app.inference.methods.surrogate.matrices import Metric
from app.inference.methods.surrogate.state import State
from app.inference.methods.surrogate.winsorised import Winsorised
from app.inference.private_zone.oracle import ClippedGaussianOracle
from app.inference.private_zone.rng import make_sampling_generator
from app.inference.runner import run
from benchmarks.breadth import measure_run
from benchmarks.cases import Case as BenchmarkCase
from benchmarks.cases import make_logistic
from benchmarks.designs import Rows
from benchmarks.measures import fit_posterior
from benchmarks.runs import Job, make_plan
from benchmarks.unseen import draw_unseen
from support.divergence import compute_divergence
from support.surrogate_tables import Case, Drawn, build, compute_losses

pytestmark = pytest.mark.quality
METHOD = "dp-psvi-surrogate"


def _nats(case: BenchmarkCase, plan: MechanismPlan, runs: int) -> Array64:
    """The divergences of ``runs`` runs, each with different noise."""
    assert case.exact is not None
    nats = list[float]()
    for seed in range(runs):
        oracle = ClippedGaussianOracle(
            case.problem.model, plan, case.facts, case.source, noise=Drawn(seed), sampling=make_sampling_generator()
        )
        points = run(plan, case.facts, oracle, np.random.default_rng(seed), lambda _: None)
        nats.append(compute_divergence(fit_posterior(case, points), case.exact))
    return np.array(nats)


def _nats_of_tables(cases: Sequence[Case], sigma: float, size: int) -> Array64:
    """The divergence of one run on each table, with noise from its seed."""
    return np.array(
        [
            compute_losses(case, build(case, case.plan(sigma, size=size), Drawn(case.seed), case.seed))[0]
            for case in cases
        ]
    )


def _mean_ratio(with_part: Array64, without: Array64) -> float:
    """The geometric mean of the ratios of divergences."""
    return float(np.exp(np.log(with_part / without).mean()))


def test_steepness_lowers_divergence_under_wide_bounds(monkeypatch: pytest.MonkeyPatch) -> None:
    """It saves at least a third of the nats.

    Bounds are far wider than the data, squares are queried around zero, and scores have one bound. A part with a
    separate bound has a smaller effect.
    """
    case = make_logistic("wide", draw_unseen("bounds far wider than data", seed=5), bound=1.0)
    monkeypatch.setattr("app.inference.methods.surrogate.schedule.MEANS_SHARE", 0.0)
    monkeypatch.setattr("app.inference.methods.surrogate.slope.STEEP", np.inf)
    plan = make_plan(Job(case, METHOD, 50, 0, epsilon=0.1))
    assert "mean_sum" not in {query.kind for query in plan.queries}
    scaled = _nats(case, plan, 5)
    monkeypatch.setattr("app.inference.methods.surrogate.efficiency.steepness", lambda state, turn: 1.0)
    assert _mean_ratio(scaled, _nats(case, plan, 5)) < 0.67


def test_tails_lower_divergence_where_levels_are_rare(monkeypatch: pytest.MonkeyPatch) -> None:
    """One row in a hundred of 300,000 has nearly certain labels.

    Measured with the part: a twentieth to a half of the nats.
    """
    case = make_logistic("many rows", draw_unseen("many rows"), bound=1.0)
    plan = make_plan(Job(case, METHOD, 50, 0, epsilon=1.0))
    with_tails = _nats(case, plan, 3)
    monkeypatch.setattr(Winsorised, "tails", lambda self, rng: None)
    assert _mean_ratio(with_tails, _nats(case, plan, 3)) < 0.5


def _keep_metric(state: State, within: Metric, bound: float) -> Metric:
    """Return the metric without a larger bound for any score."""
    return within


def _no_places(state: State) -> Places:
    """Return no disputed column."""
    width = len(state.theta)
    return Places(np.zeros((0, width)), np.zeros(0), np.ones((0, 1)))


def test_score_metric_lowers_divergence_of_a_one_sided_level(monkeypatch: pytest.MonkeyPatch) -> None:
    """All labels of one of nine levels are zero; the bounds are five times as wide.

    The level looks like a column of amounts.
    """
    rng, n = np.random.default_rng(8), 100_000
    level = rng.choice(10, n, p=[0.19, 0.095, 0.17, 0.15, 0.11, 0.08, 0.07, 0.06, 0.045, 0.03])
    x = np.column_stack([0.2 * np.eye(10)[level][:, 1:], rng.uniform(-0.2, 0.2, (n, 2))])
    y = (rng.random(n) < expit(5 * x[:, -1])) * (level != 1)
    case = make_logistic("a level", Rows(x, y.astype(np.float64)), bound=1.0)
    plan = make_plan(Job(case, METHOD, 40, 0, epsilon=0.2))
    nats = np.median(_nats(case, plan, 3))
    monkeypatch.setattr(rounds, "roomy_for_scores", _keep_metric)
    assert nats < 0.7 * np.median(_nats(case, plan, 3))


def test_disputed_columns_lower_divergence_of_common_levels(monkeypatch: pytest.MonkeyPatch) -> None:
    """A level of a fifth of the rows, which is not in a tail.

    Measured: 28 nats without the part, 0.7 with it.
    """
    rng, n = np.random.default_rng(9), 100_000
    level, x = rng.random(n) < 0.2, rng.uniform(-1, 1, (n, 6))
    y = (rng.random(n) < expit(x @ np.array([1.0, -0.5, 0.5, 1.0, 0.3, -0.8]))) & ~level
    rows = Rows(np.column_stack([0.3 * level, x]), y.astype(np.float64))
    case = make_logistic("a level of many rows", rows, bound=1.0)
    plan = make_plan(Job(case, METHOD, 40, 0, epsilon=1.0))
    nats = np.median(_nats(case, plan, 3))
    monkeypatch.setattr(score_metric, "disputed", _no_places)
    assert nats < 0.2 * np.median(_nats(case, plan, 3))


def test_separate_slope_bound_lowers_divergence_of_steep_labels(monkeypatch: pytest.MonkeyPatch) -> None:
    """Three labels in a hundred are wrong; compared with one bound for scores."""
    rng, n = np.random.default_rng(4), 20_000
    x = rng.uniform(-1, 1, (n, 5))
    y = (x @ np.array([1.0, -0.5, 0.3, 0.8, -1.0]) > 0) ^ (rng.random(n) < 0.03)
    case = make_logistic("wrong labels", Rows(x, y.astype(float)), bound=1.0)
    nats = measure_run(case, 1.0, 0, 0)[0]
    monkeypatch.setattr("app.inference.methods.surrogate.slope.STEEP", np.inf)
    assert nats < 5 < measure_run(case, 1.0, 0, 0)[0] / 5


def test_rounds_at_zero_lower_divergence_of_isotropic_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    """They save at least a fifth of the nats, over six runs."""
    case = Case(design="normal", features=40, rows=100_000, slots=100_000, seed=3)
    plan = case.plan(90.0, size=50)

    def nats() -> Array64:
        return np.array([compute_losses(case, build(case, plan, Drawn(seed), seed))[0] for seed in range(6)])

    with_part = nats()
    monkeypatch.setattr(first_bearing, "LEAST_NOISE", np.inf)
    plan = case.plan(90.0, size=50)
    assert _mean_ratio(with_part, nats()) < 0.8
