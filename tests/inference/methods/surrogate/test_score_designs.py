"""The parts of scores that bounds leave, and the designs that follow."""

import numpy as np
import pytest

from app.inference.core.linear_algebra import invert
from app.inference.methods.surrogate.scores import design_score, respond
from support.beliefs import draw_rows, make_case_frame
from support.surrogate_tables import Case


@pytest.mark.parametrize("family", ["logistic-regression", "probit-regression"])
def test_shares_of_scores_are_those_of_a_simulation(family: str) -> None:
    """Each draw's share of its score, for three bounds."""
    case = Case(family, features=2)
    rows, theta = draw_rows(case), np.array([0.5, -0.4, 0.1])
    frame, rng = make_case_frame(case, rows, theta), np.random.default_rng(4)
    response = respond(rng, rows, theta, frame, labels=True, cut=None)
    transform = invert(frame.own)
    length = np.sqrt(np.square(frame.white).sum(axis=(1, 2)))
    for clip in (0.3 * np.median(length), np.median(length), 10 * np.median(length)):
        folded = rows.fold(rows.model.sample_targets(rng, rows.draws, theta))
        scores = rows.model.scores(folded, theta) @ transform.T
        bounded = rows.model.bounded_scores(folded, theta, transform, float(clip))
        exact = np.vecdot(bounded, scores) / np.vecdot(scores, scores)
        error = np.abs(response.interpolate(clip / length) - exact)
        assert error.max() < 0.085  # of linear interpolation at the kink of min(1, x), on this grid
        assert error.mean() < 0.03


def test_bounds_for_rare_outcomes_can_leave_whole_scores() -> None:
    """One row of 3000 has the outcome: its score is very long."""
    case = Case(features=2)
    rows, theta = draw_rows(case), np.array([0.0, 0.0, -8.0])
    frame = make_case_frame(case, rows, theta)
    response = respond(np.random.default_rng(1), rows, theta, frame, labels=True, cut=None)
    design = design_score(rows, frame, response, sigma=1e-4)
    assert design.kept.min() > 0.9
