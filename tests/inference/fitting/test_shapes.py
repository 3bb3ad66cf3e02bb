"""Shapes of noise: derivatives against differences and SciPy, and residuals with a given ratio."""

import numpy as np
import pytest
from scipy.stats import norm, t

from app.inference.fitting.shapes import NormalShape, Shape, StudentShape


@pytest.mark.parametrize(
    ("shape", "law"), [(NormalShape(), norm()), (StudentShape(1.0), t(1.0)), (StudentShape(5.0), t(5.0))]
)
def test_derivatives_are_those_of_the_log_density(shape: Shape, law: object) -> None:
    e, h = np.linspace(-6, 6, 61), 1e-4
    found, above, below = (shape.differentiate(e + move) for move in (0, h, -h))
    slope = (law.logpdf(e + h) - law.logpdf(e - h)) / (2 * h)  # type: ignore[attr-defined]
    np.testing.assert_allclose(found.first, slope, atol=1e-6)
    np.testing.assert_allclose(found.second, (above.first - below.first) / (2 * h), atol=1e-6)
    np.testing.assert_allclose(found.third, (above.second - below.second) / (2 * h), atol=1e-6)


@pytest.mark.parametrize("nu", [1.0, 4.0, 100.0])
def test_any_ratio_has_a_residual_where_the_curvature_is_positive(nu: float) -> None:
    ratio = np.concatenate(([0.0], np.geomspace(1e-9, 1e9, 200)))
    for sign in (1, -1):
        e = StudentShape(nu).find_residual(sign * ratio)
        psi = StudentShape(nu).differentiate(e)
        assert np.all(psi.second[ratio < 1e6] < 0)
        np.testing.assert_allclose((psi.first / psi.second)[ratio < 1e6], sign * ratio[ratio < 1e6], rtol=1e-7)
        assert np.all(np.abs(e) <= np.sqrt(nu))
