"""Units and clipping norms from noised histograms of lengths."""

from dataclasses import replace

import numpy as np
import pytest

from app.inference.core.plan import PlanRequest
from app.inference.methods.surrogate.moments import Lengths, choose_clip, choose_scale
from app.inference.methods.surrogate.state import Opening, Search
from app.inference.private_zone.oracle import ClippedGaussianOracle
from app.inference.private_zone.queries.lengths import BINS
from app.inference.registry import find_private_method
from support.surrogate_tables import METHOD, Case, Drawn
from support.table import Table


def _count(squares: np.ndarray, largest: float) -> np.ndarray:
    bins = np.clip(np.floor(-np.log2(squares / largest)), 0, BINS - 1).astype(int)
    return np.bincount(bins, minlength=BINS).astype(float)


def test_powers_of_lengths_are_those_of_the_histogram() -> None:
    """Each bin spans a factor of 2."""
    squares = np.random.default_rng(0).uniform(0.1, 4.0, 5000)
    lengths = Lengths(_count(squares, 4.0), 4.0, 1.0)
    for power in (1, 2):
        assert lengths.mean_power(power) == pytest.approx(np.mean(squares**power), rel=np.sqrt(2) ** power - 1)
    assert lengths.root_mean_square == pytest.approx(np.sqrt(np.mean(squares)), rel=0.2)


def test_bins_of_noise_are_left_out() -> None:
    counts = np.zeros(BINS)
    counts[5] = 1000.0
    clear = Lengths(counts, 4.0, 10.0)
    noised = Lengths(counts + 10 * np.sign(np.arange(BINS) % 2 - 0.5), 4.0, 10.0)
    assert noised.mean_power(1) == pytest.approx(clear.mean_power(1))


def test_noise_alone_gives_the_largest_length() -> None:
    assert Lengths(np.full(BINS, 5.0), 9.0, 10.0).root_mean_square == pytest.approx(3.0)


def test_units_and_norms_are_finite_and_positive_for_all_lengths() -> None:
    for length in (0.0, 1e-300, 1.0, 1e300):
        assert 0 < choose_scale(length, 3) < np.inf
        assert 0 < choose_clip(length) < np.inf


@pytest.mark.parametrize("slots", [400, 1600])
def test_empty_slots_do_not_count_as_units(slots: int) -> None:
    """300 units have one to three rows; a row then counts as one of two in a unit, in any number of slots."""
    case, counts = Case(features=2), np.tile([1, 2, 3], 100)
    facts = replace(case.facts, slots=slots, unit={"kind": "column", "column": "person", "max_rows": 3})
    present = (np.arange(3) < np.pad(counts, (0, slots - 300))[:, None]).ravel()
    rng = np.random.default_rng(0)
    columns = {name: np.where(present, rng.uniform(-1, 1, present.size), 0) for name in ("x0", "x1")}
    columns |= {"y": (columns["x0"] > 0).astype(float), "_present": present.astype(np.uint8)}
    method = find_private_method(METHOD)
    plan = method.plan(PlanRequest(METHOD, 12, case.spec, {}, None, 0.05), facts)
    oracle = ClippedGaussianOracle(
        case.problem.model, plan, facts, Table(columns, 3), noise=Drawn(0), sampling=np.random.default_rng(0)
    )
    state = method.init(plan, facts, rng)
    while isinstance(state, Opening):
        state = method.step(rng, state, oracle)
    assert isinstance(state, Search)
    assert state.rows.per_unit == pytest.approx(2.0, rel=0.05)
