"""The default method gives points for all designs and answers."""

import math
import warnings
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import cycle
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.inference.core import reasons
from app.inference.core.facts import Column, DeclaredFacts
from app.inference.core.model import Array64
from app.inference.core.plan import MechanismPlan, ModelSpec, PlanRequest, PriorSpec
from app.inference.core.problems import make_problem
from app.inference.core.release import Pseudocoreset
from app.inference.methods.surrogate import openings
from app.inference.methods.surrogate.tuning import TUNING
from app.inference.private_zone.mechanisms import NoiseSource
from app.inference.private_zone.oracle import ClippedGaussianOracle
from app.inference.private_zone.rng import make_sampling_generator
from app.inference.registry import find_method
from app.inference.runner import run_points
from support.surrogate_tables import DESIGNS, FAMILIES, METHOD, SIGNALS, Case, Drawn, Script, build
from support.table import Table
from tests.inference.support import NullNoise, facts

NOISES = (0.01, 0.5, 5.0, 60.0, 1e4, 1e6)
EVERY_FAMILY = pytest.mark.parametrize("family", FAMILIES)


@pytest.fixture(scope="module", autouse=True)
def _few_draws() -> Iterator[None]:
    """Represent the belief by fewer draws, so that runs are short."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(openings, "TUNING", replace(TUNING, draws=200))
        yield


@st.composite
def cases(draw: st.DrawFn) -> Case:
    """Mostly degenerate tables."""
    features = draw(st.sampled_from([1, 2, 3, 8]))
    slots = draw(st.sampled_from([1, 2, features + 1, 30, 300, 2000]))
    rows = draw(st.sampled_from([0, 1, slots // 50, slots // 2, slots]))
    scales = draw(st.sampled_from([{}, {"x0": 1e-6}, {"x0": 1e6}]))
    prior = PriorSpec(draw(st.sampled_from([1.0, 10.0, 1e-6, 1e6])), scales, draw(st.sampled_from([None, 0.1, 4.0])))
    return Case(
        draw(st.sampled_from(FAMILIES)),
        draw(st.sampled_from(sorted(DESIGNS))),
        draw(st.sampled_from(SIGNALS)),
        features,
        min(rows, slots),
        slots,
        draw(st.integers(0, 1 << 30)),
        prior,
        draw(st.sampled_from([None, 0.01, 1.0, 1e3])),
    )


def _numbers(value: Any) -> list[float]:
    return [number for each in value.values() for number in _numbers(each)] if isinstance(value, dict) else [value]


def _check(points: Pseudocoreset, size: int, dimension: int) -> None:
    """Finite points; a symmetric doubt without negative variances, or a reason why there is none; a grade."""
    assert len(points.u) == len(points.weight) == size
    assert points.y is None or (len(points.y) == size and bool(np.all(np.isfinite(points.y))))
    assert np.all(np.isfinite(points.u))
    assert np.all(np.isfinite(points.weight))
    assert np.all(points.weight >= 0)
    assert all(math.isfinite(number) for number in _numbers(dict(points.diagnostics)))
    assert points.reliability is not None
    assert points.reliability.is_calibrated is not bool(points.reliability.reasons)
    assert points.diagnostics["trusted"] is points.reliability.is_calibrated
    if points.doubt is None:
        assert reasons.DOUBT_NOT_STATED in points.reliability.reasons
        return
    assert points.doubt.shape == (dimension, dimension)
    assert np.all(np.isfinite(points.doubt))
    np.testing.assert_array_equal(points.doubt, points.doubt.T)
    scale = max(float(points.doubt.diagonal().max()), 1e-300)
    assert np.linalg.eigvalsh(points.doubt / scale)[0] >= -1e-9


def _check_case(case: Case, points: Pseudocoreset, size: int) -> None:
    _check(points, size, case.problem.model.dimension)


@pytest.mark.long
@settings(max_examples=8, deadline=None)
@given(
    cases(),
    st.sampled_from(NOISES),
    st.sampled_from([1, 2, 9]),
    st.sampled_from([1.0, 0.05]),
    st.sampled_from([{}, {"rounds": 28}]),
    st.sampled_from([None, NullNoise()]),
)
def test_w14_any_table_gives_points(
    case: Case, sigma: float, size: int, rate: float, rounds: dict[str, int], noise: NoiseSource | None
) -> None:
    """W14: for all rows and noise multipliers."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        plan = case.plan(sigma, size, sampling_rate=rate, **rounds)
        _check_case(case, build(case, plan, noise or Drawn(case.seed), case.seed), size)


ANSWERS: dict[str, Callable[[np.random.Generator, int], Array64]] = {
    "zeros": lambda _rng, n: np.zeros(n),
    "not numbers": lambda _rng, n: np.full(n, np.nan),
    "infinite": lambda _rng, n: np.full(n, np.inf),
    "infinite, both signs": lambda rng, n: np.where(rng.random(n) < 0.5, np.inf, -np.inf),
    "tiny": lambda rng, n: 1e-300 * rng.standard_normal(n),
    "ones": lambda _rng, n: np.ones(n),
    "noise": lambda rng, n: 100 * rng.standard_normal(n),
    "many": lambda rng, n: 1e5 * rng.choice([-1.0, 0.0, 1.0], n),
    "huge": lambda rng, n: 1e290 * rng.choice([-1.0, 0.0, 1.0], n),
    "negative": lambda _rng, n: np.full(n, -1e4),
    "all magnitudes": lambda rng, n: 10.0 ** rng.uniform(-300, 290, n) * rng.choice([-1.0, 0.0, 1.0], n),
    "some not numbers": lambda rng, n: np.where(rng.random(n) < 0.2, np.nan, 1e3 * rng.standard_normal(n)),
}


def _answer(plan: MechanismPlan, case: Case, answers: str, seed: int = 0) -> Pseudocoreset:
    """Run ``plan`` on answers that have nothing to do with any table."""
    rng = np.random.default_rng(seed)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        oracle = Script(lambda length: ANSWERS[answers](rng, length))
        return run_points(plan, case.facts, oracle, np.random.default_rng(seed), lambda _: None)


@pytest.mark.long
@EVERY_FAMILY
@pytest.mark.parametrize("answers", ANSWERS)
def test_w14_any_answers_give_points(family: str, answers: str) -> None:
    """W14: no answers make the method fail, or make its output infinite; each in one of three regimes of noise."""
    case = Case(family, features=2, slots=400, rows=400)
    sigma = (0.3, 8.0, 300.0)[(list(ANSWERS).index(answers) + FAMILIES.index(family)) % 3]
    plan = case.plan(sigma, 5, rounds=2)
    _check_case(case, _answer(plan, case, answers), 5)


@pytest.mark.long
@settings(max_examples=12, deadline=None)
@given(cases(), st.sampled_from(NOISES), st.sampled_from([1, 2, 9]), st.sampled_from(sorted(ANSWERS)))
def test_w14_any_answers_for_any_plan_give_points(case: Case, sigma: float, size: int, answers: str) -> None:
    """W14: also for degenerate declarations."""
    _check_case(case, _answer(case.plan(sigma, size), case, answers, case.seed), size)


@pytest.mark.long
@EVERY_FAMILY
@pytest.mark.parametrize("sigma", [1.0, 100.0])
@pytest.mark.parametrize(("rows", "slots"), [(1, 1), (0, 500)])
def test_tiny_and_empty_tables_give_a_release(family: str, sigma: float, rows: int, slots: int) -> None:
    """Also with fewer points than represent every posterior."""
    case = Case(family, features=2, rows=rows, slots=slots)
    plan = case.plan(sigma, 2, rounds=2)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        _check_case(case, build(case, plan, Drawn(3), 3), 2)


@EVERY_FAMILY
@pytest.mark.parametrize("rate", [1.0, 0.2])
def test_one_column_and_a_sample_of_slots_give_a_release(family: str, rate: float) -> None:
    case = Case(family, features=1, rows=900, slots=1000)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        plan = case.plan(3.0, 6, rounds=2, sampling_rate=rate)
        _check_case(case, build(case, plan, Drawn(5), 5), 6)


ONE_LEVEL = (
    Column("site", "categorical", categories=("only",)),
    Column("sick", "binary"),
    Column("dose", "real", -1, 1),
    Column("visits", "integer", 0, 9),
    Column("kind", "categorical", categories=("a", "b")),
)
TARGETS = {
    "logistic-regression": "sick",
    "probit-regression": "sick",
    "linear-regression": "dose",
    "student-t-regression": "dose",
    "poisson-regression": "visits",
    "multinomial-logistic": "kind",
}


def _declared_table(columns: tuple[Column, ...], rows: int, each: int) -> Table:
    """Draw values within the declared bounds; a tenth of the rows are null."""
    rng = np.random.default_rng(1)
    present = rng.random(rows) < 0.9
    found: dict[str, Any] = {"_present": present.astype(np.uint8)}
    for column in columns:
        least, most = (0, max(len(column.categories) - 1, 0)) if column.categories else (column.lower, column.upper)
        if column.type == "binary":
            least, most = 0, 1
        values = rng.uniform(least or 0, most or 0, rows)
        values = values if column.type == "real" else np.rint(values)
        values = np.where(present, values, 0)
        found[column.name] = values.astype(np.uint16) if column.categories else values
    return Table(found, each)


@pytest.mark.long
@pytest.mark.parametrize("each", [1, 3])
@pytest.mark.parametrize("family", TARGETS)
def test_columns_of_one_value_give_a_release(family: str, each: int) -> None:
    """A category of one level has no indicator; also for units of several rows."""
    unit = {"kind": "row"} if each == 1 else {"kind": "column", "column": "person", "max_rows": each}
    declared = replace(facts(200), columns=ONE_LEVEL, unit=unit)
    for features in (("site",), tuple({"site", "visits"} - {TARGETS[family]})):
        spec = ModelSpec(family, features, TARGETS[family])
        for sigma in (1.0, 40.0):
            plan = find_method(METHOD).plan(PlanRequest(METHOD, 5, spec, {"rounds": 2}, None, sigma), declared)
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                _release_declared(plan, declared, _declared_table(ONE_LEVEL, 200 * each, each))


def _release_declared(plan: MechanismPlan, declared: DeclaredFacts, table: Table) -> None:
    model = make_problem(plan.model, declared).model
    oracle = ClippedGaussianOracle(model, plan, declared, table, noise=Drawn(1), sampling=make_sampling_generator())
    points = run_points(plan, declared, oracle, np.random.default_rng(2), lambda _: None)
    assert oracle.executed == plan.events
    _check(points, plan.size, model.dimension)


@pytest.mark.long
@EVERY_FAMILY
def test_w14_answers_that_alternate_give_points(family: str) -> None:
    case = Case(family, features=2, slots=300, rows=300)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        plan = case.plan(2.0, 4, rounds=3)
        values = cycle((0.0, np.nan, 1e200, -np.inf, 50.0))
        oracle = Script(lambda length: np.full(length, next(values)))
        points = run_points(plan, case.facts, oracle, np.random.default_rng(0), lambda _: None)
    _check_case(case, points, 4)
