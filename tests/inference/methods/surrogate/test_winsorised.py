"""From noised answers to columns' tails, and to rows that have them."""

import numpy as np
import pytest

from app.inference.core.model import Array64
from app.inference.methods.surrogate.flags import Flags
from app.inference.methods.surrogate.population import Population
from app.inference.methods.surrogate.tails import DRAWS, Tails
from app.inference.methods.surrogate.winsorised import Winsorised, clip_of_tails
from support.surrogate_tables import compute_tail_sums

ROWS = 200_000
RNG = np.random.default_rng(4)


def _found(x: Array64, noise: float = 0.0, uncertain: Array64 | float = 0.0) -> Tails | None:
    t = (x - x.mean(axis=0)) / x.std(axis=0)
    columns = np.ones(x.shape[1])
    sums = compute_tail_sums(t) + noise * RNG.standard_normal((3, len(columns)))
    return Winsorised(sums, len(x), noise, uncertain * columns).tails(np.random.default_rng(0))


def _flags(share: float) -> Array64:
    return np.asarray((RNG.random((ROWS, 1)) < share) * 1.0)


@pytest.mark.parametrize("share", [0.03, 0.01, 0.003])
@pytest.mark.parametrize("sign", [1, -1])
def test_a_rare_level_lies_where_it_does(share: float, sign: int) -> None:
    """``sqrt((1 - p) / p)`` deviations away, on its side, and nothing else varies."""
    found = _found(sign * _flags(share))
    assert found is not None
    assert found.share == 1
    assert found.distance == pytest.approx(np.sqrt((1 - share) / share), rel=0.2)
    assert found.side == pytest.approx(sign, abs=0.05)


def test_body_and_tail_of_one_distance_are_told_apart() -> None:
    far = (RNG.random((ROWS, 1)) < 0.01) * RNG.choice([-1, 1], (ROWS, 1)) * 6.0
    found = _found(np.where(far == 0, np.sqrt(0.64) * RNG.standard_normal((ROWS, 1)), far))
    assert found is not None
    assert found.share == pytest.approx(0.36, abs=0.05)
    assert found.distance == pytest.approx(6, rel=0.1)
    assert abs(found.side) < 0.1


@pytest.mark.parametrize("columns", [RNG.standard_normal((ROWS, 3)), RNG.uniform(-1, 1, (ROWS, 3)), _flags(0.4)])
def test_most_columns_have_none(columns: Array64) -> None:
    assert _found(columns) is None


def test_what_noise_may_have_made_is_none() -> None:
    """In sums, or in the variance that columns were standardised by."""
    flags = _flags(0.01)
    assert _found(flags, noise=ROWS / 10) is None
    assert _found(flags, uncertain=0.5) is None
    assert _found(flags, noise=ROWS / 100, uncertain=0.1) is not None


def test_drawn_rows_have_mean_covariance_and_tails() -> None:
    flags, heavy = _flags(0.004), RNG.standard_t(3, (ROWS, 1))
    found = _found(np.column_stack([flags, heavy, RNG.standard_normal((ROWS, 2))]))
    assert found is not None
    np.testing.assert_allclose(found.draws.mean(axis=0), 0, atol=1e-12)
    np.testing.assert_allclose(found.draws.T @ found.draws / DRAWS, np.eye(4), atol=1e-9)
    covariance = np.pad(0.1 * np.eye(4) + 0.01, (0, 1))
    rows = Population(5.0, np.array([0.1, 0.2, 0.3, 0.4, 1.0]), covariance, found).tailed_rows
    assert rows is not None
    np.testing.assert_allclose(np.cov(rows.T, bias=True), covariance, atol=1e-9)
    np.testing.assert_allclose(rows.mean(axis=0), [0.1, 0.2, 0.3, 0.4, 1.0], atol=1e-12)
    fourth = np.mean(((rows - rows.mean(axis=0)) / np.maximum(rows.std(axis=0), 1e-9)) ** 4, axis=0)
    assert fourth[0] > 100
    assert fourth[1] > 5 > fourth[2]


def test_a_column_that_noise_hides_may_be_a_level() -> None:
    """One whose variance is as uncertain as it is large; columns beside it have their tails all the same."""
    rows = np.column_stack([_flags(0.01), RNG.standard_normal((ROWS, 1))])
    known, open_ = (_found(rows, uncertain=np.array([0.01, uncertain])) for uncertain in (0.05, 0.5))
    assert known is not None
    assert open_ is not None
    assert known.clear
    assert not open_.clear
    assert open_.levels.tolist() == [True, False]


@pytest.mark.parametrize("columns", [1, 10, 100])
def test_few_rows_are_clipped(columns: int) -> None:
    """Neither normal ones nor such as are far out in one column."""
    normal = RNG.standard_normal((2000, columns))
    lengths = np.linalg.norm([compute_tail_sums(row[None]) for row in normal], axis=(1, 2))
    far = np.zeros((1, columns))
    far[0, 0] = 20
    assert np.mean(lengths > clip_of_tails(columns)) < 0.02
    assert np.linalg.norm(compute_tail_sums(far)) <= clip_of_tails(columns) * 1.001


@pytest.mark.parametrize("share", [0.09, 0.08, 0.05])
@pytest.mark.parametrize("sign", [1, -1])
def test_a_flag_of_many_rows_is_no_level_of_few(share: float, sign: int) -> None:
    """Its rows are drawn as many and as far out as they are; no step is bounded by them, and none is at a bound."""
    found = _found(sign * _flags(share))
    assert found is not None
    assert found.distance == pytest.approx(np.sqrt((1 - share) / share), rel=0.02)
    assert found.share == 1
    assert found.side == sign
    assert not found.levels.any()
    rare = sign * found.draws[:, 0] > 1
    assert rare.mean() == pytest.approx(share, rel=0.05)
    assert np.ptp(found.draws[rare]) == pytest.approx(0, abs=1e-9)


def test_a_flag_that_noise_hides_is_drawn_as_a_tail() -> None:
    """That in the mean counts: squares alone, of variances that are known well, do not say what a column is."""
    t = (_flags(0.08) - 0.08) / np.sqrt(0.08 * 0.92)
    for share, told in ((0.002, True), (0.02, False)):
        found = Winsorised(compute_tail_sums(t), ROWS, share * ROWS, np.array([0.001])).tails(np.random.default_rng(0))
        assert found is not None
        assert (found.distance[0] < 5) == told


def test_columns_are_unseen_where_noise_may_hide_a_level_and_none_stands_out() -> None:
    """What stands out in spite of as much noise is known, and what varies as it should in little noise is no level."""
    rows = np.column_stack([_flags(0.01), _flags(0.01), RNG.standard_normal((ROWS, 2)), _flags(0.002)])
    t = (rows - rows.mean(axis=0)) / rows.std(axis=0)
    found = Winsorised(compute_tail_sums(t), ROWS, 0.0, np.array([0.3, 0.5, 0.5, 0.05, 0.2]))
    assert found.unseen.tolist() == [False, True, True, False, False]
    tails = found.tails(np.random.default_rng(0))
    assert tails is not None
    assert tails.levels.tolist() == [True, False, False, False, True]
    assert not tails.clear


def _with_flags(t: Array64, share: float, noise: float = 0.0) -> Tails | None:
    flags = Flags(np.array([True]), np.sqrt(np.array([1 / share - 1])), np.array([1.0]))
    return Winsorised(compute_tail_sums(t), ROWS, noise, np.array([0.001]), flags).tails(np.random.default_rng(0))


@pytest.mark.parametrize("share", [0.4, 0.15, 0.05])
def test_a_flag_that_mean_and_variance_tell_is_drawn_as_it_is(share: float) -> None:
    """Although winsorising tells of no tail at all, or noise hides it; and no level of few rows is made of it."""
    t = (_flags(share) - share) / np.sqrt(share * (1 - share))
    for noise in (0.0, 0.02 * ROWS):
        found = _with_flags(t, share, noise)
        assert found is not None
        assert not found.levels.any()
        assert np.mean(found.draws[:, 0] > 0) == pytest.approx(share, rel=0.02)
        assert len(np.unique(np.round(found.draws[:, 0], 6))) == 2


def _told(near: float, far: float, distance: float, *, found: bool = True, uncertain: float = 0.01) -> Tails | None:
    """From sums of a column without a side, whose variance is known to a hundredth, that may be a flag."""
    answer = ROWS * np.array([[near / 2.5**2], [far / 5**2], [0.0]])
    flags = Flags(np.array([found]), np.array([distance]), np.array([1.0]))
    return Winsorised(answer, ROWS, 0.0, np.array([uncertain]), flags).tails(np.random.default_rng(0))


def test_what_winsorising_speaks_against_is_no_flag() -> None:
    """Squares of normal rows, or of few ones beyond five deviations; and what is no flag by its mean and variance."""
    assert _told(1.0, 1.0, 1.5) is not None
    for none in (_told(0.9, 1.0, 1.5), _told(1.0, 0.9, 1.5), _told(1.0, 1.0, 1.5, found=False)):
        assert none is None or none.share < 1


def test_what_noise_may_have_made_of_a_flag_does_not_speak_against_it() -> None:
    for near, far in ((0.9, 1.0), (1.0, 0.9)):
        found = _told(near, far, 1.5, uncertain=0.05)
        assert found is not None
        assert found.share == 1


def test_rare_levels_are_what_winsorising_says_they_are() -> None:
    """However many rows mean and variance make of them: both are mostly noise there."""
    few = (_flags(0.01) - 0.01) / np.sqrt(0.01 * 0.99)
    flagged, plain = _with_flags(few, 0.01), _found(few, uncertain=0.001)
    assert flagged is not None
    assert plain is not None
    assert flagged.levels.all()
    assert flagged.distance == pytest.approx(plain.distance, rel=1e-3)


def test_amounts_may_have_two_values_where_noise_hides_that_they_have_not() -> None:
    """At the distance of the rarer one; a column that is known to have two is no amount."""
    amounts = np.exp(RNG.normal(size=(ROWS, 1)))
    clear, hidden = _found(amounts), Winsorised(_sums(_flags(0.1)), ROWS, 0.005 * ROWS, np.full(1, 0.02))
    assert clear is not None
    np.testing.assert_array_equal(clear.perhaps, [0])
    told = hidden.tails(np.random.default_rng(0))
    assert told is not None
    assert told.share < 1
    assert told.perhaps == pytest.approx(3, abs=0.3)
    known = _found(_flags(0.06))
    assert known is not None
    assert known.share == 1
    np.testing.assert_array_equal(known.perhaps, [0])


def _sums(x: Array64) -> Array64:
    return compute_tail_sums((x - x.mean(axis=0)) / x.std(axis=0))
