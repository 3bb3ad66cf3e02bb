"""Scores at zero of isotropic rows: where they see the mode, how well, and what contradiction makes of it."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.special import expit

from app.inference.core.model import Array64
from app.inference.methods.surrogate.bearing import STEEP, Bearing, Found
from app.inference.methods.surrogate.isotropy import Isotropic
from app.inference.methods.surrogate.scores import Score
from app.inference.methods.surrogate.single_index import SingleIndex
from tests.inference.methods.surrogate.test_single_index import COLUMNS, labels

ROWS, SCALE, SIGMA = 60_000, 0.5, 40.0
MEAN = np.linspace(-0.2, 0.2, COLUMNS)
THETA = np.append(np.random.default_rng(5).normal(0, 1, COLUMNS), 0.5)
BELIEF = Isotropic(float(ROWS), MEAN, SCALE, 0.0, 0.0, 0.0)


def _table(seed: int = 0) -> Array64:
    """Folded rows."""
    rng = np.random.default_rng(seed)
    x = np.column_stack([MEAN + SCALE * rng.standard_normal((ROWS, COLUMNS)), np.ones(ROWS)])
    return x * np.where(rng.random(ROWS) < expit(x @ THETA), 1.0, -1.0)[:, None]


FOLDED = _table().astype(np.float32)


def _asked(bearing: Bearing, share: float, rng: np.random.Generator | None) -> Bearing:
    query = bearing.query
    summed = bearing.labels.model.bounded_scores(FOLDED, query.theta, query.transform, query.clip).sum(axis=0)
    noise = 0.0 if rng is None else SIGMA / np.sqrt(share) * query.clip * rng.standard_normal(len(summed))
    return bearing.with_answer(summed.astype(np.float64) + noise, share)


def _begun() -> Bearing:
    return Bearing(BELIEF, labels(), np.zeros(COLUMNS + 1))


def _information() -> Array64:
    rate = expit(FOLDED.astype(np.float64) @ THETA)
    return np.asarray((FOLDED * (rate * (1 - rate))[:, None]).T.astype(np.float64) @ FOLDED)


def test_every_row_has_full_length() -> None:
    """No more than C, and hardly less, whatever its label: nothing of the bound is idle."""
    query = replace(_begun(), intercept=0.4).query
    each = labels().model.bounded_scores(FOLDED, query.theta, query.transform, query.clip)
    lengths = np.linalg.norm(each, axis=1) / query.clip
    assert lengths.max() <= 1
    larger = (FOLDED[:, -1] < 0) == (expit(0.4) > 0.5)
    assert np.median(lengths[larger]) > 0.999
    assert np.median(lengths[~larger]) == pytest.approx(expit(-0.4) / expit(0.4), rel=1e-3)


def test_without_noise_the_mode_is_where_the_rows_have_it() -> None:
    first = _asked(_begun(), 0.2, None)
    moved = replace(first, intercept=first.found(0.0, 1.0).intercept)
    assert moved.intercept != 0
    theta = _asked(moved, 0.3, None).found(0.0, 1.0).theta
    apart = theta - THETA
    assert 0.5 * apart @ _information() @ apart < 3 * (COLUMNS + 1)  # of which sampling is about one in three


def test_its_noise_is_what_it_states() -> None:
    rng, information = np.random.default_rng(2), _information()
    found = [_asked(_begun(), 0.5, rng).found(SIGMA, 1.0) for _ in range(60)]
    exact = _asked(_begun(), 0.5, None).found(0.0, 1.0).theta
    nats, stated = list[float](), float(np.mean([each.variance for each in found]))
    stated -= _asked(_begun(), 0.5, None).found(0.0, 1.0).variance  # that of sampling, alike in all of them
    for each in found:
        apart = each.theta - exact
        rest = apart - each.plane @ np.linalg.solve(
            each.plane.T @ information @ each.plane, each.plane.T @ information @ apart
        )
        nats.append(float(rest @ information @ rest) / (COLUMNS - 1))
    assert np.mean(nats) == pytest.approx(stated, rel=0.25)


def test_answers_at_other_intercepts_count_by_their_noise() -> None:
    """The same share tells less where the larger residual takes more of the bound."""
    even, steep = (_asked(replace(_begun(), intercept=at), 0.5, None) for at in (0.0, 2.0))
    assert steep.weight / even.weight == pytest.approx((0.5 / expit(2.0)) ** 2, rel=1e-3)
    np.testing.assert_allclose(steep.found(0.0, 1.0).theta, even.found(0.0, 1.0).theta, atol=0.05)


def test_rare_labels_are_not_worth_it() -> None:
    """Where one label is rare, scores at the mode lose as little to their bound."""
    begun = _asked(_begun(), 0.5, None)
    assert begun.found(SIGMA, 1.0).worthwhile
    along, at_intercept = SingleIndex(labels(), COLUMNS, 0.05).means(1.5, -3.0)
    total = begun.weight * ROWS * np.concatenate([[along], np.zeros(COLUMNS - 1), [at_intercept]])
    rare = replace(begun, total=total, centre=0.05 * begun.weight, intercept=-3.0)
    assert not rare.found(SIGMA, 1.0).worthwhile


def test_a_slope_that_labels_hardly_tell_is_taken_for_a_moderate_one() -> None:
    """Nearly certain labels look alike: the search begins where it can be corrected."""
    begun = _asked(_begun(), 0.02, None)
    found = replace(begun, total=3 * begun.total).found(SIGMA, 1.0)
    assert np.sqrt(found.spread[0, 0]) > 20
    assert np.linalg.norm(SCALE * found.theta[:-1]) == pytest.approx(STEEP)


def _score(theta: Array64, variance: float) -> Score:
    return Score(theta, np.zeros(len(theta)), variance, np.eye(len(theta)))


def _found(variance: float = 4.0) -> Found:
    plane = np.eye(COLUMNS + 1)[:, [0, -1]]
    return Found(np.zeros(COLUMNS + 1), variance, plane, np.eye(2), intercept=0.0, worthwhile=True)


def test_scores_that_agree_leave_its_variance_and_share_its_plane() -> None:
    near = _score(np.full(COLUMNS + 1, 1.0), 1.0)
    said = _found().weighed((near,), np.eye(COLUMNS + 1))
    assert said.variance == 4.0
    np.testing.assert_allclose(said.theta, np.append(np.append(0.5, np.zeros(COLUMNS - 1)), 0.5))
    alone = _found().weighed((), np.eye(COLUMNS + 1))
    np.testing.assert_array_equal(alone.theta, 0.0)


def test_scores_that_contradict_it_raise_its_variance() -> None:
    far = _score(np.append(np.zeros(COLUMNS), 0.0) + 30.0, 1.0)
    assert _found().weighed((far,), np.eye(COLUMNS + 1)).variance == pytest.approx(900, rel=0.01)
    along = _score(30.0 * np.eye(COLUMNS + 1)[0], 1.0)  # a wrong length is no wrong direction
    assert _found().weighed((along,), np.eye(COLUMNS + 1)).variance == 4.0
