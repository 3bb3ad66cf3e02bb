"""DP-VI: its plan, its parts against closed forms, and the accuracy of runs with every model."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from randomgen import ChaCha

from app.errors import InvalidRequest
from app.inference.core import reasons
from app.inference.core.facts import Column, DeclaredFacts
from app.inference.core.model import Array64
from app.inference.core.plan import Mechanism, MechanismPlan, ModelSpec, PlanRequest
from app.inference.core.problems import make_problem
from app.inference.core.query import Query
from app.inference.core.reasons import Reason
from app.inference.core.release import Grade, Posterior, Pseudocoreset, judge
from app.inference.methods.dp_vi.knobs import MOST_FISHER
from app.inference.methods.dp_vi.laplace_step import denoise
from app.inference.methods.dp_vi.mean_field import Box, ascend, average_tail, begin, compare_halves, draw, record
from app.inference.methods.dp_vi.method import DpVi
from app.inference.post.laplace import Laplace
from app.inference.private_zone.oracle import ClippedGaussianOracle
from app.inference.runner import run_points
from app.privacy.events import GaussianEvent, PoissonSampledEvent, SelfComposedEvent
from support.divergence import compute_divergence
from support.table import Table
from tests.inference.populations import DECLARED, SLOTS, SPECS, population, posterior
from tests.inference.support import SPEC, WIDTH, NullNoise, facts, table

SIGMA = 101.4
"""The noise multiplier of the default plan for 4,200 slots at epsilon 1 and delta 1e-6."""


class RoundedNoise:
    """A noise source of floating-point noise with the planned scale, in grid units."""

    def __init__(self, seed: int) -> None:
        self._rng = np.random.default_rng(seed)

    def perturb(self, sums: Any, scale: Any) -> Any:
        return sums + np.rint(scale * self._rng.standard_normal(len(sums))).astype(np.int64)


def _plan(spec: ModelSpec = SPEC, declared: DeclaredFacts | None = None, **fields: Any) -> MechanismPlan:
    size = fields.pop("size", 20)
    return DpVi().plan(PlanRequest("dp-vi", size, spec, **fields), declared or facts(4200))


def _run(plan: MechanismPlan, declared: DeclaredFacts, source: Table, noise: Any, seed: int = 2) -> Pseudocoreset:
    model = make_problem(plan.model, declared).model
    sampling = np.random.Generator(ChaCha(key=seed))
    asked = ClippedGaussianOracle(model, plan, declared, source, noise=noise, sampling=sampling)
    return run_points(plan, declared, asked, np.random.default_rng(seed), lambda _: None)


def _exact(spec: ModelSpec) -> Laplace:
    problem, source = make_problem(spec, DECLARED), population()
    x, y, present = problem.design.encode(source.gather(np.arange(SLOTS)))
    return posterior(problem, x.astype(float), y.astype(float), present.astype(float))


def _normal(stated: Posterior | None) -> Laplace:
    assert stated is not None
    covariance = stated.covariance if stated.covariance.ndim > 1 else np.diag(stated.covariance)
    return Laplace(stated.mean, np.linalg.cholesky(np.linalg.inv(covariance)))


class TestPlan:
    """Plans, and requests that are refused."""

    def test_defaults_for_a_target_follow_from_the_slots(self) -> None:
        """W13: 500 queries under one mechanism, the last tenth of them for the information."""
        plan = _plan(noise_multiplier=9.0, declared=facts(50_000))
        event = PoissonSampledEvent(0.1, GaussianEvent(9.0))
        assert plan.mechanism == Mechanism(9.0, 0.1, 500)
        assert plan.events == (SelfComposedEvent(event, 500),)
        assert [(query.kind, query.length, query.count) for query in plan.queries] == [
            ("clipped_score_sum", WIDTH, 450),
            ("information_sum", WIDTH**2, 50),
        ]
        assert _plan(noise_multiplier=9.0, declared=facts(10**8)).mechanism == Mechanism(9.0, 0.02, 500)
        assert _plan(noise_multiplier=9.0, declared=facts(100)).mechanism == Mechanism(9.0, 1.0, 500)

    def test_the_published_settings_can_be_planned(self) -> None:
        published = {"learning_rate": 0.01, "clip": 5, "average": 0, "covariance": "mean-field"}
        plan = _plan(mechanism=Mechanism(4.0, 200 / 4200, 2000), parameters=published)
        assert [(query.kind, query.count) for query in plan.queries] == [("clipped_score_sum", 2000)]
        assert plan.parameters == {**published, "within_bounds": False}
        assert "C is 5" in plan.clipping

    def test_one_query_is_a_score(self) -> None:
        assert [query.kind for query in _plan(mechanism=Mechanism(4.0, 1.0, 1)).queries] == ["clipped_score_sum"]

    @pytest.mark.parametrize(
        ("fields", "pointer"),
        [
            ({}, "/privacy"),
            ({"mechanism": Mechanism(1.0, 0.1, 0)}, "/privacy/iterations"),
            ({"mechanism": Mechanism(1.0, 0.1, 5), "parameters": {"iterations": 5}}, "/parameters/iterations"),
            ({"noise_multiplier": 1.0, "parameters": {"clip": 0}}, "/parameters/clip"),
            ({"noise_multiplier": 1.0, "parameters": {"learning_rate": 0}}, "/parameters/learning_rate"),
            ({"noise_multiplier": 1.0, "parameters": {"average": 1.1}}, "/parameters/average"),
            ({"noise_multiplier": 1.0, "parameters": {"covariance": "full"}}, "/parameters/covariance"),
        ],
    )
    def test_a_faulty_request_is_refused_with_its_pointer(self, fields: dict[str, Any], pointer: str) -> None:
        with pytest.raises(InvalidRequest) as caught:
            _plan(**fields)
        assert caught.value.faults[0].pointer == pointer

    def test_many_parameters_have_a_diagonal_covariance(self) -> None:
        categories = tuple(f"c{i}" for i in range(MOST_FISHER + 1))
        declared = replace(
            facts(100), columns=(*facts(100).columns, Column("many", "categorical", categories=categories))
        )
        spec = replace(SPEC, features=("many",))
        plan = _plan(spec, declared, noise_multiplier=1.0, size=500)
        assert plan.parameters["covariance"] == "mean-field"
        assert len(plan.warnings) == 1
        with pytest.raises(InvalidRequest) as caught:
            _plan(spec, declared, noise_multiplier=1.0, parameters={"covariance": "fisher"})
        assert caught.value.faults[0].pointer == "/parameters/covariance"

    def test_a_size_below_the_smallest_exact_one_gives_a_warning(self) -> None:
        assert _plan(noise_multiplier=1.0, size=WIDTH).warnings
        assert not _plan(noise_multiplier=1.0, size=WIDTH + 1).warnings


class TestMeanField:
    """Ascent on a log density whose best mean-field approximation is known."""

    PRECISION = np.array([[40.0, 12.0], [12.0, 9.0]])
    MODE = np.array([1.5, -2.0])

    def _ascend(self, steps: int, noise: float) -> tuple[Array64, Array64, Array64]:
        rng, box = np.random.default_rng(4), Box(np.zeros(2), np.ones(2), np.full(2, -9.0), np.full(2, 2.0))
        belief = begin(np.zeros(2), np.full(2, -1.0))
        for step in range(steps):
            theta, deviation = draw(rng, belief)
            gradient = -self.PRECISION @ (theta - self.MODE) + noise * rng.standard_normal(2)
            belief = ascend(belief, gradient, deviation, 0.5, box)
            if step >= steps // 2:
                belief = record(belief, gradient, int(step >= 3 * steps // 4))
        return *average_tail(belief), compare_halves(belief)[0]

    def test_ascent_ends_at_the_mode_with_conditional_variances(self) -> None:
        """For a normal target the optimum has its mean, and variances ``1 / precision_jj``."""
        mean, log_sd, gap = self._ascend(20_000, 0.0)
        np.testing.assert_allclose(mean, self.MODE, atol=0.01)
        np.testing.assert_allclose(log_sd, -0.5 * np.log(self.PRECISION.diagonal()), atol=0.05)
        assert np.abs(gap).max() < 0.02

    def test_halves_differ_by_twice_the_error_of_their_average(self) -> None:
        """The mean square error equals a quarter of that of the halves' difference."""
        rng = np.random.default_rng(8)
        errors, gaps = [], []
        for _ in range(400):
            belief = begin(np.zeros(1), np.zeros(1))
            for step in range(40):
                belief = record(replace(belief, mean=rng.standard_normal(1)), np.zeros(1), int(step >= 20))
            errors.append(average_tail(belief)[0])
            gaps.append(compare_halves(belief)[0])
        assert np.mean(np.square(gaps)) / 4 == pytest.approx(np.mean(np.square(errors)), rel=0.25)

    def test_the_approximation_stays_within_its_bounds(self) -> None:
        box = Box(np.zeros(2), np.full(2, 0.03), np.full(2, -4.0), np.full(2, 0.5))
        belief = begin(np.zeros(2), np.zeros(2))
        for gradient in (np.array([np.inf, np.nan]), np.array([1e300, -1e300])):
            for _ in range(50):
                belief = ascend(belief, gradient, np.ones(2), 1.0, box)
        assert np.all(np.abs(belief.mean) <= 3)
        assert np.all((belief.log_sd >= -4) & (belief.log_sd <= 0.5))


class TestLaplaceStep:
    """Shrinkage of a noised information matrix."""

    @staticmethod
    def _noised(noise: float, seed: int) -> tuple[Array64, Array64]:
        rng = np.random.default_rng(seed)
        half = rng.standard_normal((12, 6))
        truth = np.eye(12) + 0.4 * half @ half.T / 6
        draws = noise * rng.standard_normal((12, 12))
        return truth, truth + np.triu(draws, 1) / np.sqrt(2) + np.triu(draws, 1).T / np.sqrt(2) + np.diag(
            draws.diagonal()
        )

    def test_without_noise_the_matrix_is_unchanged(self) -> None:
        truth, _ = self._noised(0.0, 0)
        np.testing.assert_allclose(denoise(truth, 0.0), truth, rtol=1e-12)

    def test_shrinkage_lowers_the_error(self) -> None:
        for seed in range(5):
            truth, noised = self._noised(0.3, seed)
            found = denoise(noised, 0.3)
            assert np.linalg.norm(found - truth) < 0.9 * np.linalg.norm(noised - truth)

    def test_noise_alone_leaves_a_multiple_of_the_identity(self) -> None:
        found = denoise(self._noised(200.0, 1)[1], 400.0)
        np.testing.assert_allclose(found, found[0, 0] * np.eye(12), atol=1e-9 * found[0, 0])
        assert found[0, 0] > 0

    @pytest.mark.parametrize("noise", [1.0, 30.0])
    def test_the_result_is_positive_definite_for_any_noise(self, noise: float) -> None:
        for seed in range(10):
            values = np.linalg.eigvalsh(denoise(self._noised(noise, seed)[1], noise))
            assert values[0] > 0.04 * values.mean()


def _expected_reasons(spec: ModelSpec) -> list[tuple[Reason, Grade]]:
    """W16: clipping cuts residuals that have no bound, and no answer shows its bias."""
    unbounded = {"linear-regression", "poisson-regression", "negative-binomial-regression"}
    return [(reasons.BOUNDS_CUT, Grade.CENTRE_ONLY)] if spec.family in unbounded else []


@pytest.mark.parametrize("spec", SPECS, ids=lambda spec: f"{spec.family}-{spec.noise_scale}")
class TestEveryModel:
    """Runs on a table that follows the model."""

    @pytest.mark.long
    def test_the_posterior_is_close_to_the_full_posterior(self, spec: ModelSpec) -> None:
        """Without noise, posterior and points have few nats to the full posterior."""
        plan = _plan(spec, DECLARED, mechanism=Mechanism(0.05, 1.0, 500))
        found, exact = _run(plan, DECLARED, population(), NullNoise()), _exact(spec)
        assert compute_divergence(_normal(found.posterior), exact) < 1.0
        problem = make_problem(spec, DECLARED)
        y = np.zeros(20) if found.y is None else problem.design.encode_targets(found.y)
        points = posterior(problem, found.u, y, found.weight)
        assert compute_divergence(points, _normal(found.posterior)) == pytest.approx(
            found.diagnostics["fit_kl"], abs=0.01
        )
        assert compute_divergence(points, exact) < 1.5
        assert found.reliability == judge(_expected_reasons(spec))

    @pytest.mark.long
    def test_the_error_has_the_stated_order(self, spec: ModelSpec) -> None:
        """At an epsilon of 1, the error has the order of the stated nats."""
        plan = _plan(spec, DECLARED, noise_multiplier=SIGMA)
        found = _run(plan, DECLARED, population(), RoundedNoise(1))
        assert compute_divergence(_normal(found.posterior), _exact(spec)) < 4 * found.diagnostics["noise_kl"] + 3
        assert found.diagnostics["noise_kl"] < 10
        if spec.noise_covariance is None:
            assert found.reliability == judge(_expected_reasons(spec))
        else:  # noise may be most of this mean
            assert found.reliability is not None
            assert set(found.reliability.reasons) <= {reasons.NOISE_DOMINATES}


class TestRelease:
    """The release and its diagnostics."""

    def test_mean_field_variances_are_conditional_ones(self) -> None:
        """Variances of the mean-field optimum are ``1 / precision_jj``, not ``covariance_jj``."""
        spec, chosen = SPECS[0], {"covariance": "mean-field"}
        plan = _plan(spec, DECLARED, mechanism=Mechanism(0.05, 0.5, 2000), parameters=chosen)
        found, exact = _run(plan, DECLARED, population(), NullNoise()).posterior, _exact(spec)
        assert found is not None
        assert found.covariance.shape == (4,)
        conditional = 1 / np.diag(exact.factor @ exact.factor.T)
        np.testing.assert_allclose(found.covariance, conditional, rtol=0.15)

    def test_parameters_are_named(self) -> None:
        found = _run(_plan(mechanism=Mechanism(1.0, 1.0, 20)), facts(4200), table(4000, slots=4200), NullNoise())
        assert found.posterior is not None
        assert found.posterior.names == tuple(column.name for column in found.design)

    @pytest.mark.long
    def test_errors_of_parameters_match_the_stated_ones(self) -> None:
        """Root mean square errors over 20 runs match up to a factor of two."""
        spec = SPECS[0]
        plan, exact = _plan(spec, DECLARED, noise_multiplier=3 * SIGMA), _exact(spec)
        runs = [_run(plan, DECLARED, population(), RoundedNoise(seed)) for seed in range(20)]
        sds = np.sqrt(np.linalg.inv(exact.factor @ exact.factor.T).diagonal())
        errors = [(_normal(found.posterior).mean - exact.mean) / sds for found in runs]
        said = [list(found.diagnostics["noise_in_posterior_sds"].values()) for found in runs]
        ratios = np.sqrt(np.mean(np.square(said), axis=0) / np.mean(np.square(errors), axis=0))
        assert np.all((ratios > 0.5) & (ratios < 2)), ratios

    @pytest.mark.parametrize("covariance", ["fisher", "mean-field"])
    def test_doubt_covers_the_stated_errors(self, covariance: str) -> None:
        plan = _plan(SPECS[0], DECLARED, mechanism=Mechanism(60.0, 1.0, 100), parameters={"covariance": covariance})
        found = _run(plan, DECLARED, population(), RoundedNoise(2))
        assert found.posterior is not None
        assert found.doubt is not None
        variance = found.posterior.covariance if covariance == "mean-field" else found.posterior.covariance.diagonal()
        stated = np.array(list(found.diagnostics["noise_in_posterior_sds"].values()))
        assert np.all(found.doubt.diagonal() >= 0.99 * stated**2 * variance)
        assert np.all(found.doubt.diagonal() <= 3.01 * stated**2 * variance)

    def test_each_fault_has_its_reason(self) -> None:
        noise, few = (
            _run(_plan(SPECS[0], DECLARED, **chosen), DECLARED, population(), source).reliability
            for chosen, source in (
                ({"noise_multiplier": 2e4}, RoundedNoise(3)),
                ({"mechanism": Mechanism(0.05, 1.0, 500), "size": 2}, NullNoise()),
            )
        )
        assert noise is not None
        assert noise.grade is Grade.NOT_USABLE
        assert reasons.NOISE_DOMINATES in noise.reasons
        assert few == judge([(reasons.POINTS_DIFFER, Grade.CENTRE_ONLY)])

    def test_too_few_points_do_not_change_the_posterior(self) -> None:
        spec = SPECS[0]
        plan = _plan(spec, DECLARED, mechanism=Mechanism(0.05, 1.0, 500), size=2)
        found = _run(plan, DECLARED, population(), NullNoise())
        assert compute_divergence(_normal(found.posterior), _exact(spec)) < 1.0
        assert found.diagnostics["fit_kl"] > 1.0
        assert not found.diagnostics["trusted"]
        assert not found.diagnostics["represents_every_direction"]

    def test_a_posterior_of_noise_is_not_trusted(self) -> None:
        plan = _plan(SPECS[0], DECLARED, noise_multiplier=2e4)
        assert not _run(plan, DECLARED, population(), RoundedNoise(3)).diagnostics["trusted"]

    @pytest.mark.long
    @pytest.mark.parametrize("scale", [0.0, 1e6, 1e30])
    def test_the_release_is_finite_for_any_answers(self, scale: float) -> None:
        """W14: for any answers, every model has a finite posterior."""
        rng = np.random.default_rng(0)

        class Answers:
            def ask(self, query: Query) -> Array64:
                values = np.size(query.scales(1.0))
                noised: Any = scale * rng.standard_normal(values if values > 1 else query.length)
                return query.answer(noised)

        for spec in SPECS:
            plan = _plan(spec, DECLARED, mechanism=Mechanism(1.0, 1.0, 30))
            found = run_points(plan, DECLARED, Answers(), np.random.default_rng(0), lambda _: None).posterior
            assert found is not None
            assert np.all(np.isfinite(found.mean))
            assert np.all(np.isfinite(found.covariance))

    def test_people_of_several_rows_are_units(self) -> None:
        """The posterior is of all rows; the sensitivity is to one person."""
        spec, people = SPECS[0], replace(DECLARED, slots=SLOTS // 3, unit={"kind": "column", "max_rows": 3})
        plan = _plan(spec, people, mechanism=Mechanism(0.05, 1.0, 500))
        found = _run(plan, people, Table(population().columns, rows_per_slot=3), NullNoise())
        assert compute_divergence(_normal(found.posterior), _exact(spec)) < 1.0

    def test_points_stay_within_bounds_if_requested(self) -> None:
        plan = _plan(mechanism=Mechanism(0.05, 1.0, 300), parameters={"within_bounds": True})
        found = _run(plan, facts(4200), table(4000, slots=4200), NullNoise())
        assert np.abs(found.u).max() <= 1 + 1e-12
