"""The loss if the mode is far from where the search ended."""

import numpy as np
import pytest

from app.inference.methods.surrogate.release import compute_far_loss
from app.inference.methods.surrogate.tuning import TUNING
from support.beliefs import COUNT, draw_rows, make_case_frame
from support.surrogate_tables import Case


def test_loss_far_away_is_the_usual_one_if_information_is_constant() -> None:
    """The loss along an axis grows with the square of the deviations."""
    case = Case("linear-regression", features=2, noise_scale=1.0)
    rows, theta, prior = draw_rows(case), np.zeros(3), case.problem.prior
    frame = make_case_frame(case, rows, theta)
    doubt = 1e-3 * np.diag([1.0, 2.0, 3.0])
    values = np.linalg.eigvalsh(frame.back.T @ doubt @ frame.back)
    expected = 0.5 * (values.sum() + (TUNING.far[0] ** 2 - 1) * values[-1])
    assert compute_far_loss(rows, frame, theta, prior, doubt) == pytest.approx(expected, rel=1e-9)
    assert compute_far_loss(rows, frame, theta, prior, np.full((3, 3), np.nan)) == np.inf


@pytest.mark.parametrize(("features", "variance"), [(2, 0.2), (5, 400.0)])
def test_loss_far_away_is_large_if_a_noise_scale_is_hardly_known(features: int, variance: float) -> None:
    """W16: information is inverse to the scale's square; the doubt about more than four coefficients may be larger."""
    case = Case("linear-regression", features=features)
    rows, theta, prior = draw_rows(case), np.zeros(features + 2), case.problem.prior
    frame, nats = make_case_frame(case, rows, theta), []
    for deviation in (0.01, 2.1):
        doubt = np.diag([*(features + 1) * [variance], deviation**2])
        usual = 0.5 * float(np.sum(frame.back @ frame.back.T * doubt))
        nats.append(compute_far_loss(rows, frame, theta, prior, doubt) / usual)
    assert nats[0] < TUNING.far[2] < nats[1]


def test_loss_far_away_is_large_if_rates_may_be_far_higher() -> None:
    case = Case("poisson-regression", features=2)
    rows, theta, prior = draw_rows(case), np.zeros(3), case.problem.prior
    frame = make_case_frame(case, rows, theta)
    small, large = (np.diag([0.0, 0.0, deviation**2]) for deviation in (0.1, 2.9))
    assert compute_far_loss(rows, frame, theta, prior, small) < TUNING.far[2] * 0.5 * COUNT * 0.1**2
    assert compute_far_loss(rows, frame, theta, prior, large) > TUNING.far[2] * 0.5 * COUNT * 2.9**2
