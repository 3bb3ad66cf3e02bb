"""Frames of the belief, and the filter of matrices."""

import numpy as np
import pytest

from app.inference.core.linear_algebra import factorise, invert, raise_to
from app.inference.methods.surrogate.information import correct, design_matrix, make_frame
from support.beliefs import draw_rows, make_case_frame
from support.surrogate_tables import Case


def test_frames_factor_is_a_root_of_the_believed_information() -> None:
    case = Case(features=3)
    rows, theta = draw_rows(case), np.array([0.5, -0.3, 0.2, 0.1])
    believed = rows.information(theta) * 0.7 + np.diag([300.0, 0, 0, 0]) + case.problem.prior.precision(theta)
    frame = make_frame(rows, theta, believed, case.problem.prior)
    np.testing.assert_allclose(frame.back @ frame.back.T, believed, rtol=1e-9)
    np.testing.assert_allclose(frame.back @ frame.forth, np.eye(4), atol=1e-9)


@pytest.mark.parametrize("noise", [1e-9, 1e9])
def test_matrix_without_noise_is_found_and_with_much_noise_ignored(noise: float) -> None:
    """Without noise the answer decides; much noise leaves the belief unchanged."""
    case = Case(features=3)
    rows, theta, prior = draw_rows(case), np.zeros(4), case.problem.prior
    frame = make_case_frame(case, rows, theta)
    believed = frame.back @ frame.back.T
    change = np.eye(4) + 0.3 * np.diag([1.0, -1.0, 0.5, 0.0])
    design = design_matrix(rows, frame, 0.01, 5)
    inverse = np.linalg.inv(design.root)
    answer = design.expected + inverse @ (change - np.eye(4)) @ inverse.T
    found, after = correct(frame, design, answer, noise, 0.01)
    expected = frame.back @ change @ frame.back.T if noise < 1 else believed
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-3)
    assert after <= 0.0101
    np.testing.assert_allclose(raise_to(found, prior.precision(theta)), found, rtol=1e-6, atol=1e-6)


def test_answers_that_agree_with_the_belief_show_that_it_is_certain() -> None:
    """It is within two standard errors of the innovation's."""
    case, noise = Case(features=20), 0.2
    rows, theta = draw_rows(case), np.zeros(21)
    frame = make_case_frame(case, rows, theta)
    design = design_matrix(rows, frame, 0.01, 5)
    draws = noise * np.random.default_rng(3).standard_normal((21, 21))
    agreeing, differing = design.expected + (draws + draws.T) / 2, design.expected + np.eye(21)
    _, usual = correct(frame, design, agreeing, noise, 0.06)
    assert usual < 0.3 * noise**2
    _, unusual = correct(frame, design, differing, noise, 1e-6)
    assert unusual > 0.3 * noise**2


@pytest.mark.parametrize("values", [(4.0, 1.0), (4.0, 0.0), (4.0, -1e-9), (0.0, 0.0)])
def test_matrices_with_rounding_errors_have_a_factor(values: tuple[float, float]) -> None:
    """It is lower triangular, and nearly a root of the matrix."""
    axes = np.array([[0.6, -0.8], [0.8, 0.6]])
    matrix = (axes * values) @ axes.T
    root = factorise(matrix)
    assert root[0, 1] == 0
    assert np.all(root.diagonal() > 0)
    np.testing.assert_allclose(root @ root.T, matrix, atol=1e-8)


def test_singular_matrices_have_a_pseudoinverse() -> None:
    np.testing.assert_allclose(invert(np.diag([2.0, 0.0])), np.diag([0.5, 0.0]))
