"""Integer clipping, exact sums and discrete noise: W5 and W7."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import stats

from app.inference.private_zone import mechanisms
from app.inference.private_zone.mechanisms import (
    CLIP_FLOOR,
    GRID,
    MAX_SCALE,
    DiscreteGaussian,
    choose_fine_steps,
    clip_to_grid,
    compute_exact_sum,
    raise_clip,
    round_to_steps,
    scale_factors_to_grid,
)
from app.privacy.discretisation import FINEST_SCALE, LEAST_FINE_SCALE, REACH

HOSTILE = st.one_of(
    st.floats(width=32, allow_nan=True, allow_infinity=True),
    st.sampled_from([0.0, -0.0, 1e-45, 3.4e38, -3.4e38, math.inf, -math.inf, math.nan, 1.0, 1 + 1e-7]),
)


@pytest.mark.slow
@given(
    rows=st.integers(2, 40).flatmap(
        lambda s: st.lists(st.lists(HOSTILE, min_size=s, max_size=s), min_size=1, max_size=5)
    ),
    clip=st.floats(CLIP_FLOOR, 1e30),
)
def test_no_contribution_exceeds_the_grid_ball(rows: list[list[float]], clip: float) -> None:
    """W5: after rounding, sum k**2 <= K**2 in exact integer arithmetic, for any row."""
    potentials = np.array(rows, dtype=np.float32)
    integers = clip_to_grid(potentials, np.ones(len(rows), dtype=bool), clip)
    for row in integers:
        exact = [int(value) for value in row]
        assert all(value == k for value, k in zip(row, exact, strict=True))
        assert sum(k * k for k in exact) <= GRID**2


def test_w5_a_row_that_is_not_finite_contributes_zero() -> None:
    """W5: a comparison with a missing number must not keep the row."""
    values = np.array([[np.nan, 1.0], [np.inf, 0.0]], dtype=np.float32)
    found = clip_to_grid(values, np.ones(2, dtype=bool), 1.0)
    assert not np.nan_to_num(found, nan=1.0).any(), "W5: a row that is not finite escapes clipping"


@given(length=st.integers(2, 1000), seed=st.integers(0, 2**32), scale=st.floats(-3, 6))
def test_long_rows_are_clipped_slightly_inside_the_ball(length: int, seed: int, scale: float) -> None:
    """W5: near the edge of the ball too, where rounding could move a row out; clipping wastes little."""
    rows = (np.random.default_rng(seed).standard_normal((3, length)) * 10**scale).astype(np.float32)
    clip = 1e-4
    integers = clip_to_grid(rows.copy(), np.ones(3, dtype=bool), clip)
    for original, row in zip(rows, integers, strict=True):
        squares = sum(int(k) ** 2 for k in row)
        assert squares <= GRID**2
        if np.linalg.norm(original) > 2 * clip:
            assert squares >= (0.999 * GRID) ** 2


@pytest.mark.slow
@pytest.mark.parametrize("length", [2, 100, 5000, 100_000])
@pytest.mark.parametrize("outside", [-1e-6, 0.0, 1e-7, 1e-6])
def test_a_row_just_outside_the_ball_is_zeroed(length: int, outside: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """W5: the check after rounding errs to the safe side in single precision."""
    edge = lambda length: -outside - math.sqrt(length) / 2 / GRID  # noqa: E731  (rounding takes half of them out)
    monkeypatch.setattr(mechanisms, "_margin", edge)
    rows = np.random.default_rng(length).standard_normal((40, length)).astype(np.float32)
    for row in clip_to_grid(rows, np.ones(40, dtype=bool), 1e-6):
        assert sum(int(k) ** 2 for k in row) <= GRID**2
    monkeypatch.undo()
    rows = np.random.default_rng(length).standard_normal((40, length)).astype(np.float32)
    assert np.all(np.any(clip_to_grid(rows, np.ones(40, dtype=bool), 1e-6), axis=1))


def test_a_row_outside_the_ball_after_clipping_is_zeroed(monkeypatch: pytest.MonkeyPatch) -> None:
    """W5: the check after rounding does not rely on the arithmetic before it."""
    monkeypatch.setattr(mechanisms, "_margin", lambda length: -0.001)
    rows = np.array([[3, -3], [0.25, -0.25]], dtype=np.float32)
    np.testing.assert_array_equal(clip_to_grid(rows, np.ones(2, dtype=bool), 1.0), [[0, 0], [GRID / 4, -GRID / 4]])


def test_a_clipped_sum_by_hand() -> None:
    """Rows (3, -3) and (0.25, -0.25), already centred; C = 1: the first becomes (1, -1)/sqrt(2), the second stays."""
    rows = np.array([[3, -3], [0.25, -0.25]], dtype=np.float32)
    total = compute_exact_sum(clip_to_grid(rows, np.ones(2, dtype=bool), 1.0))
    expected = GRID * (1 / math.sqrt(2) + 0.25)
    assert total[0] == -total[1]
    assert abs(total[0] - expected) < 3e-4 * GRID


@given(seed=st.integers(0, 2**32), length=st.integers(2, 200), clip=st.floats(CLIP_FLOOR, 1e3))
def test_an_absent_row_contributes_exactly_zero(seed: int, length: int, clip: float) -> None:
    """W5: the values of a null row in floating point have no effect."""
    rows = np.full((1, length), -math.log(2), dtype=np.float32)
    rows[0, 0] += np.random.default_rng(seed).standard_normal()
    assert not np.any(clip_to_grid(rows, np.zeros(1, dtype=bool), clip))


@pytest.mark.parametrize("value", [1.0, 3e38, math.inf, math.nan])
def test_an_absent_row_with_non_finite_values_contributes_zero(value: float) -> None:
    """W5: presence decides, even if scaling by zero gives NaN."""
    rows = np.array([[value, -1.0, 0.5]] * 2, dtype=np.float32)
    assert not np.any(clip_to_grid(rows, np.zeros(2, dtype=bool), 1.0))


def test_an_absent_row_takes_the_same_steps_as_a_present_one() -> None:
    """W14: absent rows are zero before rounding; a later repair row by row would reveal their number by its time."""
    rows = np.array([[4.0, -4.0], [4.0, -4.0]], dtype=np.float32)
    clip_to_grid(rows, np.array([True, False]), 1.0)
    assert np.any(rows[0])
    assert not np.any(rows[1])


@given(
    units=st.integers(1, 30).flatmap(
        lambda s: st.lists(st.lists(HOSTILE, min_size=2 * s, max_size=2 * s), min_size=1, max_size=4)
    ),
    bound=st.floats(CLIP_FLOOR, 1e30),
    there=st.tuples(st.booleans(), st.booleans()),
)
def test_no_units_matrix_exceeds_the_grid_ball(
    units: list[list[float]], bound: float, there: tuple[bool, bool]
) -> None:
    """W5: sum k**2 <= K over a unit's rounded factors, so the Frobenius norm of their products is at most K."""
    factors = np.array(units, dtype=np.float32)
    for row in scale_factors_to_grid(factors, np.tile(there, (len(units), 1)), bound):
        exact = [[int(value) for value in part] for part in row.reshape(2, -1)]
        assert [value for part in exact for value in part] == row.tolist()
        assert sum(k * k for part in exact for k in part) <= GRID
        products = sum(np.outer(np.array(part, object), part) for part in exact)
        assert int(np.sum(products**2)) <= GRID**2
        assert there[0] or not any(exact[0])
        assert there[1] or not any(exact[1])


def test_factors_outside_the_ball_after_scaling_are_zeroed(monkeypatch: pytest.MonkeyPatch) -> None:
    """W5: the check after rounding does not rely on the scaling before it."""
    monkeypatch.setattr(mechanisms, "_margin", lambda length: -0.01)
    factors = np.array([[3, -3], [0.25, -0.25]], dtype=np.float32)
    integers = scale_factors_to_grid(factors, np.ones((2, 1), dtype=bool), 1.0)
    np.testing.assert_array_equal(integers, [[0, 0], [1024, -1024]])


def test_the_edge_of_the_factors_ball_is_exact(monkeypatch: pytest.MonkeyPatch) -> None:
    """W5: 4096**2 is K; one more square is outside, even where single precision rounds it away."""
    monkeypatch.setattr(mechanisms, "_margin", lambda length: -1.0)
    factors = np.array([[4096, 1], [4095, 91], [4095, 90], [90, 4095]], dtype=np.float32)
    scale_factors_to_grid(factors, np.ones((4, 1), dtype=bool), float(GRID))
    np.testing.assert_array_equal(factors, [[0, 0], [0, 0], [4095, 90], [90, 4095]])


def test_each_sum_gets_the_noise_of_its_own_scale() -> None:
    """W7: two scales with a ratio of a million, mixed; chi-square fails by chance less than once in 10**9."""
    scale = np.where(np.arange(2000) % 3 == 0, 50.0, 5e7)
    noise = DiscreteGaussian().perturb(np.zeros(2000, dtype=np.int64), scale) / scale
    for chosen in (scale == 50.0, scale == 5e7):
        statistic = float(np.sum(np.square(noise[chosen])))
        assert 1e-10 < stats.chi2.cdf(statistic, int(chosen.sum())) < 1 - 1e-10


@pytest.mark.parametrize("scale", [np.ones(3), np.array([1.0, 0.0]), np.array([1.0, math.nan])])
def test_scales_that_do_not_fit_the_sums_are_refused(scale: NDArray[np.float64]) -> None:
    with pytest.raises(ValueError, match="scale"):
        DiscreteGaussian().perturb(np.zeros(2, dtype=np.int64), scale)


def _integers(seed: int, n: int) -> NDArray[np.float32]:
    potentials = np.random.default_rng(seed).standard_normal((n, 7)).astype(np.float32)
    return clip_to_grid(potentials, np.ones(n, dtype=bool), 1.0)


@given(seed=st.integers(0, 2**32), cuts=st.lists(st.integers(0, 300), max_size=6))
def test_sums_do_not_depend_on_partition_or_order(seed: int, cuts: list[int]) -> None:
    """W5: integer sums do not depend on order or partition, and equal Python's."""
    integers = _integers(seed, 300)
    whole = compute_exact_sum(integers)
    shuffled = np.random.default_rng(seed + 1).permutation(integers)
    parts = [compute_exact_sum(part) for part in np.split(shuffled, sorted(cuts))]
    np.testing.assert_array_equal(np.sum(parts, axis=0, dtype=np.int64), whole)
    assert [sum(int(k) for k in column) for column in integers.T] == whole.tolist()


@pytest.mark.slow
@pytest.mark.long
def test_noise_has_the_planned_variance_to_two_percent_of_its_scale() -> None:
    """W7: 160,000 draws by chi-square, which fails by chance less than once in 10**9; and their shape."""
    scale, count = 5.0 * GRID, 160_000
    noise = DiscreteGaussian().perturb(np.zeros(count, dtype=np.int64), scale) / scale
    assert 5e-10 < stats.chi2.cdf(float(np.sum(np.square(noise))), count) < 1 - 5e-10
    assert stats.kstest(noise[:20_000], "norm").pvalue > 1e-10


@pytest.mark.parametrize("scale", [0.5, 1.0, 3.0])
def test_rounded_noise_has_the_closed_form_at_a_small_scale(scale: float) -> None:
    """The rounded normal law: frequencies of 4,000 draws by chi-square."""
    noise = DiscreteGaussian().perturb(np.zeros(4000, dtype=np.int64), scale)
    edges = np.array([-math.inf, *(np.arange(-1, 3) - 0.5), math.inf])
    observed = np.histogram(noise, np.nan_to_num(edges, posinf=1e9, neginf=-1e9))[0]
    expected = 4000 * np.diff(stats.norm.cdf(edges / scale))
    assert stats.chisquare(observed, expected).pvalue > 1e-10


@pytest.mark.parametrize("scale", [2.0**-4, 0.5, 1e-3 * GRID, 0.05 * GRID, 5.0 * GRID, 1e6 * GRID, MAX_SCALE * GRID])
def test_noise_has_the_finest_scale_that_integers_allow(scale: float) -> None:
    """W7: the delta set aside for the distance from continuous noise suffices for every scale."""
    steps = choose_fine_steps(scale)
    assert steps % 2 == 1
    assert LEAST_FINE_SCALE <= scale * steps <= FINEST_SCALE
    assert 2**63 / (FINEST_SCALE * (1 + 1e-15)) > REACH + 3


def test_the_largest_noise_and_sums_stay_within_64_bits() -> None:
    """The largest noise that can be drawn, however unlikely, on the largest sum."""
    steps = choose_fine_steps(MAX_SCALE * GRID)
    ends = np.array([2**63 - 1, -(2**63)], dtype=np.int64)
    rounded = round_to_steps(ends, steps)
    assert [int(value) for value in rounded] == [round(Fraction(int(end), steps)) for end in ends]
    assert int(np.abs(rounded).max()) + 2**61 < 2**63


@given(noise=st.integers(-(2**63), 2**63 - 1), shift=st.integers(-(2**20), 2**20), half=st.integers(0, 2**40))
def test_rounding_commutes_with_adding_a_sum_and_is_symmetric(noise: int, shift: int, half: int) -> None:
    """W7: the answer is a function of the sum with the fine noise, so it inherits its guarantee."""
    steps = 2 * half + 1

    def rounded(value: int) -> int:
        return int(round_to_steps(np.array([value], dtype=np.int64), steps)[0])

    assert rounded(noise) == round(Fraction(noise, steps))
    if abs(noise + shift * steps) < 2**63:
        assert rounded(noise + shift * steps) == rounded(noise) + shift
    if noise > -(2**63):
        assert rounded(-noise) == -rounded(noise)


def test_noise_is_rounded_from_a_finer_grid(monkeypatch: pytest.MonkeyPatch) -> None:
    """W7: the added noise is OpenDP's draw, rounded to the nearest multiple of the fine steps."""
    source = DiscreteGaussian()
    drawn: list[list[int]] = []
    source.perturb(np.zeros(1, dtype=np.int64), 3.0 * GRID)
    (fine,) = source._measurements
    measurement = source._measurements[fine]

    def draw(zeros: list[int]) -> list[int]:
        drawn.append(measurement(zeros))
        return drawn[-1]

    monkeypatch.setitem(source._measurements, fine, draw)
    sums = np.arange(-50, 50, dtype=np.int64) * 2**30
    noised = source.perturb(sums, 3.0 * GRID)
    steps = choose_fine_steps(3.0 * GRID)
    assert 3.0 * GRID * steps <= fine <= 3.0 * GRID * steps * (1 + 1e-15)
    whole = [int(total) * steps + int(one) for total, one in zip(sums, drawn[0], strict=True)]
    assert noised.tolist() == [round(Fraction(value, steps)) for value in whole]
    assert any(int(one) % steps for one in drawn[0])


def test_noise_is_added_to_the_sum_and_never_repeats() -> None:
    source, sums = DiscreteGaussian(), np.array([10**15, -(10**15)], dtype=np.int64)
    first, second = source.perturb(sums, 2.0**20), source.perturb(sums, 2.0**20)
    assert np.all(np.abs(first - sums) < 2**26)
    assert not np.array_equal(first, second)


@pytest.mark.parametrize("scale", [0.0, -1.0, 2.0**-5, math.nan, math.inf, MAX_SCALE * GRID * 2])
def test_a_scale_out_of_range_is_refused(scale: float) -> None:
    with pytest.raises(ValueError, match="scale"):
        DiscreteGaussian().perturb(np.zeros(2, dtype=np.int64), scale)


def test_sums_without_room_for_noise_are_refused() -> None:
    with pytest.raises(ValueError, match="64-bit"):
        DiscreteGaussian().perturb(np.zeros(2), 1.0)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="64-bit"):
        DiscreteGaussian().perturb(np.array([2**62], dtype=np.int64), 1.0)


def test_a_clip_is_raised_to_the_floor_and_must_be_finite() -> None:
    assert raise_clip(0.0) == CLIP_FLOOR
    assert raise_clip(-5.0) == CLIP_FLOOR
    assert raise_clip(2.0) == 2.0
    for clip in (math.nan, math.inf):
        with pytest.raises(ValueError, match="finite"):
            raise_clip(clip)
