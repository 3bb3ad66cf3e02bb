"""Solvers of Hilbert coresets against brute force, and against the bounds of their papers."""

from collections.abc import Callable

import numpy as np
import pytest
from scipy.optimize import minimize_scalar, nnls

from app.inference.core.model import Array32, Array64
from app.inference.methods.hilbert.frank_wolfe import frank_wolfe
from app.inference.methods.hilbert.giga import giga
from app.inference.methods.hilbert.omp import nonnegative_least_squares, omp
from app.inference.methods.hilbert.vectors import VectorSum, sum_vectors
from app.inference.methods.public_table import Selection

Solver = Callable[[VectorSum, int], Selection]
SOLVERS: tuple[Solver, ...] = (giga, frank_wolfe, omp)
SIZES = range(1, 26)


def _vectors(n: int = 200, width: int = 15, at: int = 0) -> Array32:
    rng = np.random.default_rng(at)
    lengths = rng.gamma(1.0, 1.0, (n, 1))
    return ((rng.standard_normal((n, width)) + 0.3) * lengths).astype(np.float32)


def _solve(solver: Solver, vectors: Array32, size: int) -> Selection:
    return solver(sum_vectors(vectors.copy()), size)


def _residual(vectors: Array32, found: Selection) -> Array64:
    exact = vectors.astype(np.float64)
    return np.asarray(exact.sum(axis=0) - found.weights @ exact[found.indices])


def _errors(solver: Solver, vectors: Array32) -> Array64:
    return np.array([np.linalg.norm(_residual(vectors, _solve(solver, vectors, size))) for size in SIZES])


@pytest.mark.parametrize("solver", SOLVERS)
class TestEverySolver:
    def test_a_selection_is_sparse_distinct_and_positive(self, solver: Solver) -> None:
        for size in SIZES:
            found = _solve(solver, _vectors(), size)
            assert 1 <= len(found.indices) <= size
            assert len(set(found.indices)) == len(found.indices) == len(found.weights)
            assert np.all(found.weights > 0)

    def test_the_error_never_grows(self, solver: Solver) -> None:
        errors = _errors(solver, _vectors())
        assert np.all(np.diff(errors) <= 1e-4 * errors[0])
        assert errors[-1] < 0.1 * errors[0]

    def test_zero_vectors_are_not_chosen(self, solver: Solver) -> None:
        vectors = _vectors(40)
        vectors[::2] = 0
        assert np.all(_solve(solver, vectors, 20).indices % 2 == 1)
        assert not len(_solve(solver, np.zeros((5, 3), dtype=np.float32), 4).indices)

    def test_one_row_is_represented_exactly(self, solver: Solver) -> None:
        vectors = _vectors(1)
        found = _solve(solver, vectors, 3)
        np.testing.assert_allclose(found.weights, 1, rtol=1e-6)


def test_giga_takes_the_same_step_as_brute_force() -> None:
    """Brute force: the geodesic by its defining angle, the point on it by numerical search."""
    vectors = _vectors(60, 8)
    exact = vectors.astype(np.float64)
    total, directions = exact.sum(axis=0), exact / np.linalg.norm(exact, axis=1, keepdims=True)
    target = total / np.linalg.norm(total)
    for size in range(1, 8):
        before = _solve(giga, vectors, size)
        current = before.weights @ exact[before.indices]
        current /= np.linalg.norm(current)
        tangents = directions - np.outer(directions @ current, current)
        tangents /= np.linalg.norm(tangents, axis=1, keepdims=True)
        best = directions[np.argmax(tangents @ (target - (target @ current) * current))]

        def distance(share: float, current: Array64 = current, best: Array64 = best) -> float:
            mixed = (1 - share) * current + share * best
            return float(np.linalg.norm(total) * np.sqrt(1 - (mixed @ target / np.linalg.norm(mixed)) ** 2))

        found = minimize_scalar(distance, bounds=(0, 1), method="bounded", options={"xatol": 1e-10})
        error = np.linalg.norm(_residual(vectors, _solve(giga, vectors, size + 1)))
        np.testing.assert_allclose(error, found.fun, rtol=1e-5)


def test_frank_wolfe_stays_in_the_polytope_within_its_error_bound() -> None:
    vectors = _vectors()
    radius = np.linalg.norm(vectors, axis=1).sum()
    for size, error in zip(SIZES, _errors(frank_wolfe, vectors), strict=True):
        assert error**2 <= 4 * radius**2 / (size + 3)
        found = _solve(frank_wolfe, vectors, size)
        lengths = np.linalg.norm(vectors[found.indices], axis=1)
        np.testing.assert_allclose(found.weights @ lengths, radius, rtol=1e-5)


def test_frank_wolfe_takes_the_best_step_to_the_best_vertex() -> None:
    vectors = _vectors(50, 6)
    exact = vectors.astype(np.float64)
    lengths = np.linalg.norm(exact, axis=1)
    vertices = lengths.sum() * exact / lengths[:, None]
    for size in range(1, 8):
        residual = _residual(vectors, _solve(frank_wolfe, vectors, size))
        current = exact.sum(axis=0) - residual
        vertex = vertices[np.argmax(vertices @ residual)]
        steps = np.linspace(0, 1, 100_001)[:, None]
        best = np.linalg.norm(residual - steps * (vertex - current), axis=1).min()
        error = np.linalg.norm(_residual(vectors, _solve(frank_wolfe, vectors, size + 1)))
        np.testing.assert_allclose(error, best, rtol=1e-5)


@pytest.mark.parametrize("size", [1, 3, 10, 25])
def test_weights_of_omp_match_the_library(size: int) -> None:
    """The weights on the chosen rows match SciPy's solver."""
    vectors = _vectors(200, 40)
    found = _solve(omp, vectors, size)
    exact = vectors.astype(np.float64)
    weights, error = nnls(exact[found.indices].T, exact.sum(axis=0))
    np.testing.assert_allclose(np.linalg.norm(_residual(vectors, found)), error, rtol=1e-6)
    np.testing.assert_allclose(found.weights, weights, rtol=1e-5)


def test_omp_adds_the_row_most_aligned_with_the_residual() -> None:
    vectors = _vectors(100, 40)
    directions = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    for size in range(1, 10):
        before, after = _solve(omp, vectors, size), _solve(omp, vectors, size + 1)
        aligned = directions @ _residual(vectors, before)
        assert np.argmax(aligned) in after.indices


@pytest.mark.parametrize("size", [8, 12, 25])
def test_omp_improves_a_start_and_fits_its_weights(size: int) -> None:
    """The weights match the library's, also for a start far from any fit."""
    vectors, rng = _vectors(200, 40), np.random.default_rng(3)
    start = Selection(rng.choice(200, 6, replace=False), np.full(6, 30.0))
    found = omp(sum_vectors(vectors.copy()), size, start)
    exact = vectors.astype(np.float64)
    weights, error = nnls(exact[found.indices].T, exact.sum(axis=0))
    np.testing.assert_allclose(found.weights, weights, rtol=1e-5)
    assert error < nnls(exact[start.indices].T, exact.sum(axis=0))[1]
    assert len(found.indices) <= size


def test_omp_from_no_rows_is_omp_without_a_start() -> None:
    vectors = _vectors()
    empty = Selection(np.zeros(0, np.int64), np.zeros(0))
    found, plain = omp(sum_vectors(vectors.copy()), 20, empty), _solve(omp, vectors, 20)
    np.testing.assert_array_equal(found.indices, plain.indices)
    np.testing.assert_array_equal(found.weights, plain.weights)


@pytest.mark.parametrize("at", range(5))
def test_non_negative_least_squares_from_any_feasible_start(at: int) -> None:
    rng = np.random.default_rng(at)
    basis = rng.standard_normal((12, 8))
    basis /= np.linalg.norm(basis, axis=1, keepdims=True)
    target, start = rng.standard_normal(8), np.maximum(rng.standard_normal(12), 0)
    found = nonnegative_least_squares(basis, target, start)
    assert np.all(found >= 0)
    np.testing.assert_allclose(np.linalg.norm(target - found @ basis), nnls(basis.T, target)[1], atol=1e-9)
