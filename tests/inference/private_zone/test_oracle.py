"""The oracle answers planned queries only, by noised arrays only: W4, W5, W14."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.inference.core.model import Array64
from app.inference.core.plan import PlannedQuery
from app.inference.core.problems import make_problem
from app.inference.core.query import Integers
from app.inference.private_zone.mechanisms import GRID, BadQuery, DiscreteGaussian
from app.inference.private_zone.oracle import ClippedGaussianOracle, PlanExhausted
from app.inference.private_zone.queries import LengthHistogram, MeanSum, PotentialSum
from app.inference.private_zone.rng import make_sampling_generator
from app.privacy.events import GaussianEvent, PoissonSampledEvent, SelfComposedEvent, UnknownEvent
from support.table import Table
from tests.inference.support import SPEC, WIDTH, NullNoise, facts, oracle, plan, table

DRAWS = np.random.default_rng(5).standard_normal((4, WIDTH))


class Recording:
    """Keeps the exact sums and scales that it is asked to perturb."""

    def __init__(self) -> None:
        self.sums: list[Integers] = []
        self.scales: list[float | Array64] = []

    def perturb(self, sums: Integers, scale: float | Array64) -> Integers:
        self.sums.append(sums)
        self.scales.append(scale)
        return sums


class Failing:
    def perturb(self, sums: Integers, scale: float | Array64) -> Integers:
        raise RuntimeError


def test_an_answer_is_the_clipped_sum() -> None:
    """Against potentials computed row by row in double precision from the table itself."""
    source = table(40, slots=50)
    clip = 0.7
    columns = source.columns
    x = np.stack(
        [
            (columns["age"] - 50) / 30,
            columns["hours"] / 50 - 1,
            columns["colour"] == 1,
            columns["colour"] == 2,
            2 * columns["smoker"] - 1,
            np.ones(50),
        ],
        axis=1,
    )
    signed = (2 * columns["ill"] - 1)[:, None] * (x @ DRAWS.T)
    potentials = -np.log1p(np.exp(-signed[:40]))
    potentials -= potentials.mean(axis=1, keepdims=True)
    norms = np.linalg.norm(potentials, axis=1, keepdims=True)
    expected = (potentials * np.minimum(1, clip / norms)).sum(axis=0)
    assert np.any(norms > clip)
    assert np.any(norms < clip)
    answer = oracle(source, plan(50)).ask(PotentialSum(DRAWS, clip))
    np.testing.assert_allclose(answer, expected, atol=40 * clip * 3e-4)


def test_noise_has_the_scale_of_the_event() -> None:
    """W4: for every query, sigma comes from the plan's event, in grid units."""
    noise = Recording()
    asked = oracle(table(30), plan(30, noise=2.5), noise)
    asked.ask(PotentialSum(DRAWS, 0.1))
    asked.ask(PotentialSum(DRAWS, 10.0))
    assert noise.scales == [2.5 * GRID, 2.5 * GRID]


def test_a_query_beyond_the_plan_is_refused() -> None:
    """W4: queries beyond the plan are refused; the executed events are the planned ones."""
    planned = plan(30, iterations=3, rate=0.5)
    asked = oracle(table(30), planned)
    executed = [asked.executed]
    for _ in range(3):
        asked.ask(PotentialSum(DRAWS, 1.0))
        executed.append(asked.executed)
    assert executed[:2] == [(), (PoissonSampledEvent(0.5, GaussianEvent(1.0)),)]
    assert executed[3] == planned.events
    with pytest.raises(PlanExhausted):
        asked.ask(PotentialSum(DRAWS, 1.0))
    assert asked.executed == planned.events


def test_an_event_is_consumed_before_the_answer() -> None:
    """W4: the event counts as executed even if the answer then fails."""
    asked = oracle(table(30), plan(30), Failing())
    with pytest.raises(RuntimeError):
        asked.ask(PotentialSum(DRAWS, 1.0))
    assert asked.executed == (GaussianEvent(1.0),)


def test_mixed_events_are_carried_out_in_order() -> None:
    """W4: each answer has the noise and rate of its event."""
    noise = Recording()
    sampled = PoissonSampledEvent(0.5, GaussianEvent(3.0))
    once, events = GaussianEvent(1.0), (GaussianEvent(1.0), SelfComposedEvent(sampled, 2), GaussianEvent(2.0))
    queries = tuple(PlannedQuery("potential_sum", 4, *each) for each in ((once,), (sampled, 2), (GaussianEvent(2.0),)))
    asked = oracle(table(30), replace(plan(30), queries=queries), noise)
    for _ in range(4):
        asked.ask(PotentialSum(DRAWS, 1.0))
    assert noise.scales == [GRID, 3.0 * GRID, 3.0 * GRID, 2.0 * GRID]
    assert asked.executed == events
    np.testing.assert_array_equal(noise.sums[0], noise.sums[3])


def test_an_event_without_a_price_is_refused() -> None:
    with pytest.raises(UnknownEvent):
        oracle(table(30), replace(plan(30), queries=()))


def test_a_query_of_another_kind_or_length_is_refused() -> None:
    """W4: the price of the next query was that of its kind and length."""
    lengths = LengthHistogram(1.0, WIDTH, intercept=True, largest=WIDTH, squares=False)
    first = PlannedQuery(lengths.kind, lengths.length, GaussianEvent(1.0))
    planned = replace(plan(30), queries=(first, *plan(30).queries))
    asked = oracle(table(20, slots=30), planned)
    for query in (PotentialSum(DRAWS, 1.0), PotentialSum(np.resize(DRAWS, (lengths.length, WIDTH)), 1.0)):
        with pytest.raises(BadQuery):
            asked.ask(query)
    assert not asked.executed
    assert asked.ask(lengths).sum() == 20
    for other in (lengths, PotentialSum(DRAWS[:3], 1.0)):
        with pytest.raises(BadQuery):
            asked.ask(other)
    asked.ask(PotentialSum(DRAWS, 1.0))
    assert asked.executed == (SelfComposedEvent(GaussianEvent(1.0), 2),)


def test_a_query_of_an_unregistered_class_is_refused() -> None:
    """W5: only the registered classes bound the sensitivity; a subclass with the same kind is refused."""

    class Unbounded(MeanSum):
        def answer(self, noised: Integers) -> Array64:
            return noised.astype(np.float64)

    query = Unbounded(1.0, WIDTH, intercept=True, clip=1.0)
    planned = PlannedQuery(query.kind, query.length, GaussianEvent(1.0))
    asked = oracle(table(30), replace(plan(30), queries=(planned,)))
    with pytest.raises(BadQuery):
        asked.ask(query)
    assert asked.executed == ()


@settings(max_examples=60)
@given(seed=st.integers(0, 2**32), row=st.integers(0, 19), clip=st.floats(1e-6, 100.0), spread=st.floats(1e-6, 1e6))
def test_neighbours_differ_by_at_most_the_sensitivity(seed: int, row: int, clip: float, spread: float) -> None:
    """W5: nulling one row moves the exact integer sum by at most K in L2; other rows' contributions stay."""
    source = table(20, seed=seed % 100)
    neighbour = Table({name: values.copy() for name, values in source.columns.items()})
    for values in neighbour.columns.values():
        values[row] = 0
    draws = spread * np.random.default_rng(seed).standard_normal((4, WIDTH))
    both = Recording()
    for content in (source, neighbour):
        oracle(content, plan(20), both).ask(PotentialSum(draws, clip))
    difference = [int(k) for k in both.sums[0] - both.sums[1]]
    assert sum(k * k for k in difference) <= GRID**2


@pytest.mark.parametrize("slots", [41, 700, 1500])
def test_null_rows_change_nothing(slots: int) -> None:
    """W5, W6: padding is exactly zero, and nothing depends on the number of rows."""
    noise = Recording()
    rows = table(40)
    padded = Table({name: np.concatenate([v, np.zeros(slots - 40, v.dtype)]) for name, v in rows.columns.items()})
    for content in (rows, padded):
        oracle(content, plan(content.slots), noise).ask(PotentialSum(DRAWS, 0.5))
    np.testing.assert_allclose(noise.sums[0], noise.sums[1], atol=40)
    empty = Table({name: np.zeros_like(values) for name, values in padded.columns.items()})
    assert not np.any(oracle(empty, plan(slots)).ask(PotentialSum(DRAWS, 0.5)))


@given(value=st.floats(allow_nan=True, allow_infinity=True), code=st.integers(0, 65535))
def test_faulty_rows_give_a_finite_answer(value: float, code: int) -> None:
    """W14: for any row, there is a finite answer, which differs by one clipping norm at most."""
    source = table(10)
    clean = oracle(source, plan(10)).ask(PotentialSum(DRAWS, 1.0))
    for name in ("age", "hours", "smoker", "ill"):
        source.columns[name][3] = value
    source.columns["colour"][3] = code
    answer = oracle(source, plan(10)).ask(PotentialSum(DRAWS, 1.0))
    assert np.linalg.norm(answer - clean) <= 2


def test_rows_are_gathered_once_before_the_first_query() -> None:
    """W4: subsamples do not depend on answers; one pass in order, each slot at most once."""
    source = table(5000)
    asked = oracle(source, plan(5000, iterations=20, rate=0.01))
    gathered = np.concatenate(source.gathered)
    assert np.all(np.diff(gathered) > 0)
    assert len(gathered) < 2000
    source.columns.clear()
    for _ in range(20):
        asked.ask(PotentialSum(DRAWS, 1.0))


def test_subsampled_answers_are_unbiased_after_scaling() -> None:
    """Unbiased under 1/q: the mean of 400 answers at q = 0.3 is near the full sum; false alarms below 10**-9."""
    source, iterations, rate = table(200), 400, 0.3
    full = oracle(source, plan(200)).ask(PotentialSum(DRAWS, 1.0))
    asked = oracle(source, plan(200, iterations=iterations, rate=rate))
    answers = np.array([asked.ask(PotentialSum(DRAWS, 1.0)) / rate for _ in range(iterations)])
    error = answers.std(axis=0) / np.sqrt(iterations)
    assert np.all(np.abs(answers.mean(axis=0) - full) < 7 * error)


def test_the_oracle_exposes_only_answers_and_events() -> None:
    """W3: the public surface is the query and the record of events; no state under a public name."""
    asked = oracle(table(10), plan(10), DiscreteGaussian())
    public = {name for name in dir(asked) if not name.startswith("_")}
    assert public == {"ask", "executed"}
    assert not hasattr(asked, "__dict__")
    answer = asked.ask(PotentialSum(DRAWS, 1.0))
    assert type(answer) is np.ndarray
    assert answer.dtype == np.float64
    assert answer.shape == (4,)
    assert answer.base is None


@pytest.mark.parametrize(
    ("draws", "clip"),
    [
        (DRAWS[:3], 1.0),
        (DRAWS[:, :3], 1.0),
        (np.full_like(DRAWS, np.nan), 1.0),
        (np.full_like(DRAWS, np.inf), 1.0),
        (DRAWS, float("nan")),
        (DRAWS, float("inf")),
    ],
)
def test_a_faulty_query_is_refused_and_not_counted(draws: Any, clip: float) -> None:
    asked = oracle(table(10), plan(10))
    with pytest.raises(BadQuery):
        asked.ask(PotentialSum(draws, clip))
    assert asked.executed == ()


def test_a_table_of_other_slots_or_rows_per_unit_is_refused() -> None:
    logistic, source = make_problem(SPEC, facts(10)).model, table(10)
    people = replace(facts(10), unit={"kind": "column", "column": "age", "max_rows": 2})
    for planned, declared in ((plan(11), facts(11)), (plan(10), people)):
        with pytest.raises(ValueError, match="slots and rows per unit of the plan"):
            ClippedGaussianOracle(
                logistic, planned, declared, source, noise=NullNoise(), sampling=make_sampling_generator()
            )
