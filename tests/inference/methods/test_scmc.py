"""The filter over a stream against closed forms, and its memories against each other."""

import json
from typing import Any

import numpy as np
import pytest
from corevault.belief import read_belief
from scipy.optimize import nnls

from app.errors import InvalidRequest
from app.inference.core.belief import has_fitting_shapes
from app.inference.core.facts import DeclaredFacts
from app.inference.core.model import Array64
from app.inference.core.plan import ModelSpec, PlanRequest, PriorSpec
from app.inference.core.priors import NormalPrior
from app.inference.core.problems import make_problem, name_parameters
from app.inference.core.release import Pseudocoreset
from app.inference.methods.public_table import PublicTable
from app.inference.methods.scmc.filtering import Filter, State
from app.inference.methods.scmc.memory import Compress, Memory, compress_to_coreset, compress_to_reservoir
from app.inference.methods.scmc.method import run_filter
from app.inference.methods.scmc.particles import count_effective, find_power, normalise, resample
from app.inference.post.laplace import Laplace, fit_laplace
from app.inference.registry import find_method
from app.inference.runner import run_public
from app.releases.http.belief_rendering import render_belief
from support.divergence import compute_divergence
from support.table import Table
from tests.inference.populations import DECLARED, SPECS, population, posterior

PUBLIC = DeclaredFacts(DECLARED.columns, DECLARED.slots, DECLARED.unit, "public")
ROWS = 300
FEW = DeclaredFacts(DECLARED.columns, ROWS, DECLARED.unit, "public")


def _first_rows() -> Table:
    return Table({name: values[:ROWS] for name, values in population().columns.items()})


def _keep(_: np.random.Generator, memory: Memory, __: Array64, ___: int) -> Memory:
    return memory


def _run(compress: Compress, spec: ModelSpec = SPECS[0], particles: int = 60) -> State:
    problem = make_problem(spec, FEW)
    table = PublicTable(_first_rows(), problem.design)
    model_filter = Filter(problem.model, problem.prior, compress, moves=3)
    return run_filter(model_filter, problem, table, np.random.default_rng(4), batch=20, particles=particles)


def _release(size: int, spec: ModelSpec = SPECS[0], draw: int = 0, **parameters: Any) -> Pseudocoreset:
    plan = find_method("scmc").plan(PlanRequest("scmc", size, spec, parameters), PUBLIC)
    return run_public(plan, PUBLIC, population(), np.random.default_rng(draw))


class TestParticles:
    def test_systematic_resampling_is_unbiased(self) -> None:
        """The mean count over a uniform offset is P times the weight."""
        weights = np.random.default_rng(1).dirichlet(np.full(50, 0.3))
        offsets = (np.arange(4000) + 0.5) / 4000
        counts = np.array([np.bincount(resample(weights, offset), minlength=50) for offset in offsets])
        assert np.all(np.abs(counts - 50 * weights) < 1)
        np.testing.assert_allclose(counts.mean(axis=0), 50 * weights, atol=1 / 4000)

    def test_the_power_is_the_largest_that_leaves_enough_particles(self) -> None:
        rng = np.random.default_rng(2)
        log_weights, potentials = 0.1 * rng.standard_normal(200), 50 * rng.standard_normal(200)
        power = find_power(log_weights, potentials, 1.0, 100)
        assert 0 < power < 1
        assert count_effective(log_weights + power * potentials) == pytest.approx(100, abs=1e-3)
        assert find_power(log_weights, 1e-6 * potentials, 1.0, 100) == 1

    def test_effective_number_of_equal_weights_is_their_number(self) -> None:
        assert count_effective(np.full(30, -7.0)) == pytest.approx(30)
        assert count_effective(np.append(0.0, np.full(29, -1e9))) == pytest.approx(1)


class TestFilter:
    @pytest.mark.parametrize("make", [compress_to_coreset, compress_to_reservoir])
    @pytest.mark.parametrize("size", [ROWS, ROWS + 7])
    def test_a_memory_of_all_rows_is_sequential_monte_carlo_bit_for_bit(self, make: Any, size: int) -> None:
        full, found = _run(_keep), _run(make(size))
        np.testing.assert_array_equal(found.particles, full.particles)
        np.testing.assert_array_equal(found.log_weights, full.log_weights)
        np.testing.assert_array_equal(found.memory.indices, np.arange(ROWS))
        np.testing.assert_array_equal(found.memory.weights, np.ones(ROWS))
        assert found.counts == full.counts
        assert not np.array_equal(_run(make(8)).particles, full.particles)

    @pytest.mark.slow
    def test_particles_follow_a_normal_posterior(self) -> None:
        """The mean and the covariance are within six standard errors of the closed form."""
        spec, particles = SPECS[6], 1500
        problem = make_problem(spec, FEW)
        x, y = (values.astype(float) for values in PublicTable(_first_rows(), problem.design).read(np.arange(ROWS)))
        exact = posterior(problem, x, y, np.ones(ROWS))
        for compress in (_keep, compress_to_coreset(30)):
            state = _run(compress, spec, particles)
            weights = normalise(state.log_weights)
            standard = (state.particles - exact.mean) @ exact.factor
            bound = 6 / np.sqrt(particles / 4)
            assert np.max(np.abs(weights @ standard)) < bound
            second = (standard * weights[:, None]).T @ standard
            assert np.max(np.abs(second - np.eye(len(second)))) < np.sqrt(2) * bound

    def test_every_evaluation_is_counted(self) -> None:
        problem, evaluated = make_problem(SPECS[0], FEW), list[int]()

        class Counting:
            def log_likelihood(self, rows: Array64, draws: Array64) -> Array64:
                evaluated.append(len(rows) * len(draws))
                return np.asarray(problem.model.log_likelihood(rows, draws))

        table = PublicTable(_first_rows(), problem.design)
        model_filter = Filter(Counting(), problem.prior, compress_to_coreset(25), moves=3)
        state = run_filter(model_filter, problem, table, np.random.default_rng(4), batch=20, particles=60)
        assert state.counts.evaluations == sum(evaluated)
        assert state.counts.proposed == 3 * 60 * state.counts.resamplings
        assert 0 < state.counts.accepted < state.counts.proposed

    def test_one_batch_far_from_a_wide_prior_leaves_enough_particles(self) -> None:
        """All rows at once: weights alone would leave one particle."""
        wide = ModelSpec("logistic-regression", SPECS[0].features, SPECS[0].target, PriorSpec(100.0))
        problem = make_problem(wide, FEW)
        table = PublicTable(_first_rows(), problem.design)
        model_filter = Filter(problem.model, problem.prior, compress_to_coreset(50), moves=3)
        state = run_filter(model_filter, problem, table, np.random.default_rng(4), batch=ROWS, particles=100)
        assert count_effective(state.log_weights) >= 49.9
        assert state.counts.resamplings > 5

    @pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
    def test_likelihoods_that_are_not_finite_leave_finite_particles(self, value: float) -> None:
        class Broken:
            def log_likelihood(self, rows: Array64, draws: Array64) -> Array64:
                return np.where(draws[:, 0] > 0, value, -0.5 * draws[:, 0] ** 2) * np.ones((len(rows), 1))

        model_filter = Filter(Broken(), NormalPrior(np.ones(2)), compress_to_coreset(5), moves=2)
        rng = np.random.default_rng(3)
        state = model_filter.init(rng, 40, 1)
        for first in range(0, 30, 10):
            state = model_filter.step(rng, state, np.arange(first, first + 10), np.zeros((10, 1)))
        assert np.all(np.isfinite(state.particles))
        assert np.all(state.particles[:, 0] <= 0)
        assert np.all(np.isfinite(state.memory.weights))


class TestMemories:
    def _fill(self, count: int, rng: np.random.Generator) -> Memory:
        """A memory whose potentials depend on four numbers of each row."""
        rows = rng.standard_normal((count, 4))
        weights = rng.gamma(1.0, 3.0, count)
        return Memory(np.arange(count), rows, weights, -np.square(rows @ rng.standard_normal((4, 80))) / 2)

    def test_weights_of_a_coreset_are_the_best_on_its_rows(self) -> None:
        """They match SciPy's solver for the weighted, centred potentials."""
        rng = np.random.default_rng(5)
        memory, particle_weights = self._fill(60, rng), rng.dirichlet(np.ones(80))
        found = compress_to_coreset(12)(rng, memory, particle_weights, 10)
        assert len(found.indices) <= 12
        assert np.all(found.weights > 0)
        centred = np.sqrt(particle_weights) * (memory.potentials - (memory.potentials @ particle_weights)[:, None])
        total = memory.weights @ centred
        best, error = nnls(centred[found.indices].T, total)
        np.testing.assert_allclose(found.weights, best, rtol=1e-3)
        assert error < 0.1 * np.linalg.norm(total)

    def test_a_coreset_that_can_be_exact_is(self) -> None:
        """Squares of four numbers span ten dimensions, so eleven rows can represent every sum."""
        rng = np.random.default_rng(6)
        memory, even = self._fill(200, rng), np.full(80, 1 / 80)
        found = compress_to_coreset(60)(rng, memory, even, 20)
        error = memory.weights @ memory.potentials - found.weights @ found.potentials
        assert np.std(error) < 1e-3 * np.std(memory.weights @ memory.potentials)

    @pytest.mark.long
    def test_a_reservoir_holds_each_row_with_the_same_probability(self) -> None:
        """4,000 streams of 40 rows; six standard errors for each row."""
        rng, size, count = np.random.default_rng(7), 10, 40
        compress, held = compress_to_reservoir(size), np.zeros(count)
        for _ in range(4000):
            memory = Memory(np.zeros(0, np.int64), np.zeros((0, 1)), np.zeros(0), np.zeros((0, 1)))
            for batch in np.split(np.arange(count), [3, 8, 15, 31]):
                new = Memory(batch, np.zeros((len(batch), 1)), np.ones(len(batch)), np.zeros((len(batch), 1)))
                memory = compress(rng, memory.append(new), np.ones(1), len(batch))
                seen = batch[-1] + 1
                assert len(set(memory.indices)) == len(memory.indices) == min(size, seen)
                np.testing.assert_allclose(memory.weights, seen / min(size, seen))
            held[memory.indices] += 1
        share = size / count
        assert np.max(np.abs(held / 4000 - share)) < 6 * np.sqrt(share * (1 - share) / 4000)


class TestMethod:
    @pytest.mark.long
    @pytest.mark.parametrize("spec", SPECS, ids=lambda spec: f"{spec.family}-{spec.noise_scale}")
    def test_a_coreset_represents_the_table_for_every_model(self, spec: ModelSpec) -> None:
        """``fit_kl`` compares the points with all 4,000 rows."""
        points = _release(60, spec, batch=50, particles=200)
        assert points.reliability is not None
        assert points.reliability.is_calibrated, points.diagnostics
        assert points.diagnostics["rows"] <= 60

    @pytest.mark.slow
    def test_a_coreset_is_far_better_than_a_reservoir(self) -> None:
        found, sample = (_release(60, batch=50, memory=memory) for memory in ("coreset", "reservoir"))
        assert found.diagnostics["fit_kl"] < 0.02 * sample.diagnostics["fit_kl"]

    def test_points_are_rows_of_the_table(self) -> None:
        points = _release(30, batch=100, particles=100)
        x, y = PublicTable(population(), make_problem(SPECS[0], PUBLIC).design).read(np.arange(4000))
        rows = {(*row, target) for row, target in zip(x.tolist(), y.tolist(), strict=True)}
        assert points.y is not None
        released = zip(points.u[points.weight > 0].tolist(), points.y[points.weight > 0], strict=True)
        assert rows >= {(*u, target) for u, target in released}

    @pytest.mark.parametrize(
        ("size", "parameters", "pointer"),
        [
            (1001, {}, "/size"),
            (20, {"particles": 7}, "/parameters/particles"),
            (20, {"particles": 3}, "/parameters/particles"),
            (20, {"batch": 0}, "/parameters/batch"),
            (20, {"moves": 0}, "/parameters/moves"),
            (20, {"memory": "full"}, "/parameters/memory"),
        ],
    )
    def test_bad_requests_are_refused_at_their_member(
        self, size: int, parameters: dict[str, Any], pointer: str
    ) -> None:
        """The model has four parameters, so seven particles are too few."""
        with pytest.raises(InvalidRequest) as caught:
            find_method("scmc").plan(PlanRequest("scmc", size, SPECS[0], parameters), PUBLIC)
        assert caught.value.faults[0].pointer == pointer


def test_the_particles_of_the_last_row_are_a_block_of_the_belief() -> None:
    """Their normal distribution is near the posterior; its KL was at most 0.06 in 20 runs."""
    released = _release(40, draw=1, particles=300)
    (particles,) = released.further
    assert (particles.name, particles.family) == ("particles", "particles")
    assert has_fitting_shapes(particles)
    draws, weight = particles.arrays["draws"], particles.arrays["weight"]
    problem = make_problem(SPECS[0], PUBLIC)
    assert draws.shape == (300, problem.model.dimension)
    assert particles.arrays["names"].tolist() == list(name_parameters(problem))
    assert weight.sum() == pytest.approx(1)
    assert np.all(weight >= 0)
    deviations = draws - weight @ draws
    normal = Laplace(
        weight @ draws, np.asarray(np.linalg.cholesky(np.linalg.inv((deviations * weight[:, None]).T @ deviations)))
    )
    x, y, present = problem.design.encode(population().gather(np.arange(PUBLIC.slots)))
    exact = fit_laplace(
        problem.model,
        np.asarray(problem.model.fold(x.astype(np.float64), y)),
        present.astype(np.float64),
        problem.prior,
        problem.prior.mean,
    )
    assert compute_divergence(normal, exact) < 0.5
    rendered = render_belief(released.make_blocks(name_parameters(problem)))
    assert [block["name"] for block in json.loads(rendered["json"])["blocks"]] == ["particles", "noise"]
    found = read_belief(rendered["npz"]).particles
    assert found is not None
    np.testing.assert_array_equal(found.draws, draws)
    np.testing.assert_allclose(found.mean, normal.mean)
    assert 1 <= found.effective_size <= 300
    drawn = found.sample(20_000, np.random.default_rng(0))
    np.testing.assert_allclose(drawn.mean(axis=0), found.mean, atol=6 * np.sqrt(found.covariance.max() / 20_000))
