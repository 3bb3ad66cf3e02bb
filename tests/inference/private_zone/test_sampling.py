"""Poisson subsampling: the sampler has the law that the accountant assumes (W4)."""

from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from scipy import stats

from app.inference.private_zone import sampling
from app.inference.private_zone.rng import make_sampling_generator
from app.inference.private_zone.sampling import Subsamples, draw_poisson_pieces, draw_poisson_subsample


def _inclusions(slots: int, rate: float, runs: int) -> np.ndarray:
    rng = make_sampling_generator()
    included = np.zeros((runs, slots), dtype=bool)
    for run in range(runs):
        included[run, draw_poisson_subsample(rng, slots, rate)] = True
    return included


@pytest.mark.parametrize("piece", [2, 1 << 22])
def test_every_slot_enters_independently_with_the_rate(piece: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """W4: all 32 patterns of 5 slots have their binomial probabilities, drawn in pieces or at once.

    Fails by chance about once in 10**9.
    """
    monkeypatch.setattr(sampling, "_PIECE", piece)
    rate, runs = 0.3, 6000
    patterns = _inclusions(5, rate, runs) @ (1 << np.arange(5))
    ones = np.array([pattern.bit_count() for pattern in range(32)])
    expected = runs * rate**ones * (1 - rate) ** (5 - ones)
    assert stats.chisquare(np.bincount(patterns, minlength=32), expected).pvalue > 1e-9


@pytest.mark.parametrize(("slots", "rate"), [(20_000, 0.002), (400, 0.1), (1_000, 0.24), (1_000, 0.26), (400, 0.9)])
def test_sparse_and_dense_subsets_have_binomial_sizes_and_even_inclusion(slots: int, rate: float) -> None:
    """W4: both ways in which a subset may be drawn; fails by chance about once in 10**9."""
    runs = 300
    included = _inclusions(slots, rate, runs)
    sizes = included.sum(axis=1)
    spread = float(np.sum((sizes - slots * rate) ** 2) / (slots * rate * (1 - rate)))
    assert 1e-9 < stats.chi2.cdf(spread, runs) < 1 - 1e-9
    halves = included[:, : slots // 2].sum()
    assert 1e-9 < stats.binom.cdf(halves, slots // 2 * runs, rate) < 1 - 1e-9


@pytest.mark.parametrize("rate", [0.002, 0.998])
def test_few_expected_slots_have_binomial_sizes_too(rate: float) -> None:
    """W4: drawn by their gaps, without a binomial's cut tail; fails by chance about once in 10**9."""
    slots, runs = 1500, 3000
    included = _inclusions(slots, rate, runs)
    sizes = np.minimum(included.sum(axis=1) if rate < 0.5 else slots - included.sum(axis=1), 9)
    expected = runs * np.append(stats.binom.pmf(np.arange(9), slots, 0.002), stats.binom.sf(8, slots, 0.002))
    assert stats.chisquare(np.bincount(sizes, minlength=10), expected).pvalue > 1e-9
    halves = included[:, : slots // 2].sum()
    assert 1e-9 < stats.binom.cdf(halves, slots // 2 * runs, rate) < 1 - 1e-9


class _Zeros(np.random.Generator):
    """A generator whose every second gap is zero, as NumPy's from 53 zero bits."""

    def geometric(self, p: Any, size: Any = None) -> Any:
        return np.where(np.arange(size) % 2, 3, 0)


def test_w4_a_gap_of_zero_does_not_repeat_a_slot() -> None:
    """No share of delta covers a gap of zero, which has probability 2**-53."""
    found = draw_poisson_subsample(_Zeros(np.random.PCG64(0)), 12, 0.1)
    np.testing.assert_array_equal(found, [0, 3, 4, 7, 8, 11])


def test_a_rate_of_one_takes_all_slots() -> None:
    np.testing.assert_array_equal(draw_poisson_subsample(make_sampling_generator(), 7, 1.0), np.arange(7))


@pytest.mark.parametrize("most", [0, 1 << 20])
@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    slots=st.integers(1, 3000),
    rates=st.lists(st.tuples(st.sampled_from([1e-4, 0.01, 0.2, 0.9, 1.0]), st.integers(1, 5)), min_size=1, max_size=3),
)
def test_the_union_covers_every_subsample_in_every_layout(
    slots: int, rates: list[tuple[float, int]], most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """W4: in every layout of the union, stored or drawn again, the gathered slots are the drawn ones."""
    monkeypatch.setattr(sampling, "_MOST_STORED", most)
    rng = make_sampling_generator()
    state = rng.bit_generator.state
    samples = Subsamples(rng, slots, rates)
    union = samples.union
    rng_again = make_sampling_generator()
    rng_again.bit_generator.state = state
    assert np.all(np.diff(union) > 0)
    for rate, count in rates:
        for _ in range(count):
            positions = samples.next()
            if rate >= 1:
                assert positions is None
                assert len(union) == slots
            else:
                assert positions is not None
                np.testing.assert_array_equal(union[positions], draw_poisson_subsample(rng_again, slots, rate))
    with pytest.raises(StopIteration):
        samples.next()


@pytest.mark.slow
def test_a_dense_subsample_of_many_slots_comes_in_pieces() -> None:
    """Memory is for the piece, not for the slots: half of 10**12 would not fit."""
    pieces = draw_poisson_pieces(make_sampling_generator(), 10**12, 0.5)
    first, second = next(pieces), next(pieces)
    assert 0 <= first[0] < first[-1] < second[0] < second[-1] < 1 << 23
    assert len(first) > 1 << 20


def test_the_cost_follows_the_subsample_not_the_slots() -> None:
    """A list of 10**9 slots would exceed the time and memory of this test."""
    samples = Subsamples(make_sampling_generator(), 10**9, [(5e-8, 20)])
    assert 0 < len(samples.union) < 3000


def test_generators_have_different_keys() -> None:
    """W7: two generators never give the same subsample."""
    first, second = (draw_poisson_subsample(make_sampling_generator(), 10_000, 0.1) for _ in range(2))
    assert not np.array_equal(first, second)
