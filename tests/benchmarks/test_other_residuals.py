"""The default method on targets that do not follow their family."""

from dataclasses import replace

import numpy as np
import pytest

from app.inference.core.facts import Column
from app.inference.core.model import Array64
from benchmarks.cases import Case, compute_full_posterior
from benchmarks.experiments.other_residuals import make_table
from benchmarks.measures import fit_posterior
from benchmarks.runs import Job, make_seeded_release
from benchmarks.tables.drawn import Features, Target, assemble
from support.divergence import compute_divergence

ROWS = 20_000


def _make_case(values: Array64, x: Array64, target: Target) -> Case:
    column = target.column
    assert column is not None
    inside = np.clip(values, column.lower, column.upper)
    features = Features("one", (Column("x", "real", -1, 1),), (x,))
    case = assemble(features, replace(target, values=inside))
    return replace(case, name="one", exact=compute_full_posterior(case))


def _release(case: Case, epsilon: float) -> tuple[float, float, bool]:
    """Measure the KL to the full posterior and the stated KL; the third value is whether it is calibrated."""
    assert case.exact is not None
    release = make_seeded_release(Job(case, "dp-psvi-surrogate", 50, 1, {}, epsilon))
    kl = compute_divergence(fit_posterior(case, release), case.exact)
    assert release.reliability is not None
    return kl, float(release.diagnostics["noise_kl"]), release.reliability.is_calibrated


@pytest.mark.parametrize("law", ["t(3)", "exponential"])
def test_early_scores_do_not_fix_an_unknown_scale(law: str) -> None:
    """Scores before the histogram of residuals have another cut; their scale is that of the centre of the residuals."""
    kl, stated, _ = _release(make_table(f"{law}, unknown scale"), 2.0)
    assert kl < 40
    assert kl < 2 * stated


def test_counts_that_vary_more_than_stated_are_not_cut_away() -> None:
    """The model states a dispersion of 1; it is 4."""
    rng = np.random.default_rng(6)
    x = rng.uniform(-1, 1, ROWS)
    counts = rng.poisson(np.exp(1 + 0.5 * x) * rng.gamma(0.25, 4, ROWS)).astype(np.float64)
    column = Column("y", "integer", 0, 150)
    case = _make_case(counts, x, Target("negative-binomial-regression", column, x, dispersion=1.0))
    kl, stated, calibrated = _release(case, 1.0)
    assert kl < 20
    assert kl < 2 * stated or not calibrated


@pytest.mark.parametrize(("stated", "degrees"), [(0.1, 4.0), (0.4, 1.0)])
def test_stated_scale_that_is_far_too_small_is_not_calibrated(stated: float, degrees: float) -> None:
    """Most residuals are far then, so the scores' information is less than the model's. The true scale is 5."""
    rng = np.random.default_rng(8)
    x = rng.uniform(-1, 1, ROWS)
    values = 20 * x + 5 * rng.standard_t(4, ROWS)
    column = Column("y", "real", -70, 70)
    target = Target("student-t-regression", column, x, noise_scale=stated, degrees_of_freedom=degrees)
    _, _, calibrated = _release(_make_case(values, x, target), 0.3)
    assert not calibrated


@pytest.mark.parametrize(("rows", "epsilon"), [(2000, 0.3), (20_000, 3.0)])
def test_centre_of_heavy_tails_is_found_from_far_away(rows: int, epsilon: float) -> None:
    """Squares of residuals have no mean, and half the range is 1400 scales."""
    rng = np.random.default_rng(9)
    x = rng.uniform(-1, 1, rows)
    values = 20 * x + 0.05 * rng.standard_cauchy(rows)
    column = Column("y", "real", -70, 70)
    target = Target("student-t-regression", column, x, noise_scale=0.05, degrees_of_freedom=1.0)
    kl, stated, calibrated = _release(_make_case(values, x, target), epsilon)
    assert kl < 5
    assert kl < 5 * stated
    assert calibrated


@pytest.mark.parametrize(("distance", "most"), [(30.0, 5.0), (400.0, 50.0)])
def test_search_with_scores_that_redescend_starts_with_wider_ones(distance: float, most: float) -> None:
    """The search begins many scales from most targets, where Student-t scores are small."""
    rng = np.random.default_rng(7)
    x = rng.uniform(-1, 1, ROWS)
    values = distance + distance / 6 * x + rng.standard_t(4, ROWS)
    target = Target("student-t-regression", Column("y", "real", -2 * distance, 2 * distance), x, noise_scale=1.0)
    kl, stated, _ = _release(_make_case(values, x, target), 1.0)
    assert kl < most
    assert kl < 5 * stated
