"""The contract of every registered method, with further rules for private and public ones."""

import inspect
import json
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from app.errors import InvalidRequest, MethodNotAllowedOnPrivateData
from app.inference.core import plan_json, reasons
from app.inference.core.capabilities import Artefact
from app.inference.core.knobs import Choice, Knob, Names, NormalLaw, Parameter, Switch
from app.inference.core.model import Array64
from app.inference.core.plan import Mechanism, MechanismPlan, PlanRequest
from app.inference.core.query import Query
from app.inference.core.release import Pseudocoreset
from app.inference.core.row_source import RowSource
from app.inference.private_zone.mechanisms import GRID, GRID_BITS
from app.inference.private_zone.rng import make_monte_carlo_generator
from app.inference.registry import find_method, find_private_method, find_public_method, list_methods
from app.inference.runner import run, run_points, run_public
from app.privacy.events import GaussianEvent, NonPrivateEvent, PoissonSampledEvent, flatten, to_json
from support.table import Table
from tests.inference.support import MODEL, SPEC, WIDTH, facts, oracle, table

ALL = [entry.id for entry in list_methods()]
PRIVATE = [entry.id for entry in list_methods() if entry.private]
POINTS = [entry.id for entry in list_methods() if entry.private and entry.leaves is not Artefact.GROUPS]
PUBLIC = [entry.id for entry in list_methods() if not entry.private]
MECHANISM = Mechanism(4.0, 0.5, 7)
MECHANISMS = {"dp-groups": Mechanism(4.0, 1.0, 1)}


def _request(method_id: str, **fields: Any) -> PlanRequest:
    private = find_method(method_id).private
    return PlanRequest(
        method_id, 7, SPEC, mechanism=MECHANISMS.get(method_id, MECHANISM) if private else None, **fields
    )


def _plan(method_id: str) -> MechanismPlan:
    sensitivity = "private" if find_method(method_id).private else "public"
    return find_method(method_id).plan(_request(method_id), facts(60, sensitivity=sensitivity))


def _check(points: Pseudocoreset, size: int) -> None:
    assert points.u.shape == (size, WIDTH)
    assert points.weight.shape == (size,)
    assert points.y is not None
    assert set(np.unique(points.y)) <= {0.0, 1.0}
    assert all(values.dtype == np.float64 for values in (points.u, points.y, points.weight))
    assert np.all(np.isfinite(points.u))
    assert np.all(points.u[:, -1] == 1)
    assert np.all(np.isfinite(points.weight))
    assert np.all(points.weight >= 0)
    assert [column.name for column in points.design][-1] == "intercept"
    json.dumps(dict(points.diagnostics), allow_nan=False)
    _check_reliability(points)


def _check_reliability(points: Pseudocoreset) -> None:
    """W16: every method judges its release; only a release with a stated doubt is calibrated."""
    assert points.reliability is not None
    assert points.diagnostics["trusted"] is points.reliability.is_calibrated
    if points.doubt is None:
        assert reasons.DOUBT_NOT_STATED in points.reliability.reasons
        return
    assert points.doubt.shape == (MODEL.dimension,) * 2
    assert points.doubt.dtype == np.float64
    np.testing.assert_array_equal(points.doubt, points.doubt.T)
    scale = max(float(points.doubt.diagonal().max()), 1e-300)
    assert np.linalg.eigvalsh(points.doubt / scale)[0] >= -1e-9


def _values(knob: Knob) -> tuple[Any, ...]:
    match knob:
        case Choice():
            return knob.choices
        case Switch():
            return (True, False)
        case Parameter():
            return (int(knob.maximum),)
        case Names():
            return ([f"c{index}" for index in range(knob.largest)],)
        case NormalLaw():
            names, ones = [f"b{index}" for index in range(knob.largest)], [1.0] * knob.largest
            return ({"parameters": names, "mean": ones, "variance": ones},)


class _Answers:
    """An oracle without a table, which shows that a method needs no rows."""

    def __init__(self, value: float) -> None:
        self._value = value

    def ask(self, query: Query) -> Array64:
        values = np.size(query.scales(1.0))
        draws = np.random.default_rng().standard_normal(values if values > 1 else query.length)
        noised: Any = self._value * GRID * draws  # no integer is as large
        return query.answer(noised)


@pytest.mark.parametrize("method_id", ALL)
class TestEveryMethod:
    """Laws of planning."""

    def test_plan_is_deterministic_and_survives_storage(self, method_id: str) -> None:
        plan = _plan(method_id)
        assert plan == _plan(method_id)
        assert plan_json.from_json(json.loads(json.dumps(plan_json.to_json(plan)))) == plan
        assert plan.method == method_id

    @pytest.mark.parametrize("size", [0, -1, 10**9, True])
    def test_impossible_size_is_refused(self, method_id: str, size: Any) -> None:
        sensitivity = "private" if find_method(method_id).private else "public"
        with pytest.raises(InvalidRequest) as caught:
            find_method(method_id).plan(replace(_request(method_id), size=size), facts(60, sensitivity=sensitivity))
        assert caught.value.faults[0].pointer == "/size"

    def test_unknown_parameter_is_refused_without_its_name(self, method_id: str) -> None:
        sensitivity = "private" if find_method(method_id).private else "public"
        request = _request(method_id, parameters={"secret_name": 1})
        with pytest.raises(InvalidRequest) as caught:
            find_method(method_id).plan(request, facts(60, sensitivity=sensitivity))
        assert caught.value.faults[0].pointer == "/parameters"
        assert "secret_name" not in caught.value.detail

    def test_parameters_are_described_and_accept_their_own_bounds(self, method_id: str) -> None:
        for knob in find_method(method_id).parameters:
            schema = knob.schema()
            assert schema["type"] in {"integer", "number", "string", "boolean", "array", "object"}
            assert schema["description"]
            for value in _values(knob):
                knob.check(value, "/parameters")
            for value in ([], [[]], {}, [1], -1.5, None):
                with pytest.raises(InvalidRequest) as caught:
                    knob.check(value, "/parameters")
                assert caught.value.faults[0].pointer.startswith("/parameters")
            if knob.default is not None:
                knob.check(knob.default, "/parameters")


@pytest.mark.parametrize("method_id", PRIVATE)
class TestPrivateMethods:
    """Laws of methods that learn from noised answers."""

    def test_run_carries_out_the_planned_events(self, method_id: str) -> None:
        """W4: the executed events equal the planned ones, and every planned step is reported."""
        plan, done = _plan(method_id), list[int]()
        asked = oracle(table(50, slots=60), plan)
        released = run(plan, facts(60), asked, make_monte_carlo_generator(), done.append)
        assert asked.executed == plan.events
        assert done == list(range(1, plan.steps + 1))
        assert sum(count for _, count in flatten(plan.events)) == plan.steps
        assert released.reliability is not None
        assert released.diagnostics["trusted"] is released.reliability.is_calibrated
        json.dumps(dict(released.diagnostics), allow_nan=False)

    def test_no_step_accepts_rows(self, method_id: str) -> None:
        """W2: no function of a private method takes a row source."""
        entry = find_private_method(method_id)
        for name in ("init", "step", "finish"):
            annotations = inspect.get_annotations(getattr(entry, name))
            assert RowSource not in annotations.values()
        assert not hasattr(entry, "build")

    def test_units_of_many_rows_are_refused(self, method_id: str) -> None:
        """They must never be accounted as single rows."""
        people = replace(facts(60), unit={"kind": "column", "column": "age", "max_rows": 3})
        with pytest.raises(InvalidRequest):
            find_method(method_id).plan(_request(method_id), people)


@pytest.mark.parametrize("method_id", POINTS)
class TestPrivatePoints:
    """Laws of private methods that release points."""

    def test_plan_has_the_requested_mechanism(self, method_id: str) -> None:
        plan = _plan(method_id)
        assert plan.mechanism == MECHANISM
        rates = {event.sampling_rate for event, _ in flatten(plan.events) if isinstance(event, PoissonSampledEvent)}
        assert rates == {0.5}
        of_all_rows = [event for event, _ in flatten(plan.events) if isinstance(event, GaussianEvent)]
        assert len(of_all_rows) == (2 if method_id == "vips" else 0), "lengths and fixed statistics are asked once"
        assert plan.grid_bits == GRID_BITS

    def test_run_ends_with_points_of_the_requested_size(self, method_id: str) -> None:
        plan, done = _plan(method_id), list[int]()
        asked = oracle(table(50, slots=60), plan)
        points = run_points(plan, facts(60), asked, make_monte_carlo_generator(), done.append)
        assert len(done) == plan.steps
        _check(points, plan.size)

    def test_release_has_diagnostics_of_its_noise(self, method_id: str) -> None:
        """They include trust, and the noise of each parameter in posterior standard deviations."""
        plan = _plan(method_id)
        points = run_points(
            plan, facts(60), oracle(table(50, slots=60), plan), make_monte_carlo_generator(), lambda _: None
        )
        diagnostics, design = points.diagnostics, [column.name for column in points.design]
        assert isinstance(diagnostics["trusted"], bool)
        assert diagnostics["noise_kl"] >= 0
        assert list(diagnostics["noise_in_posterior_sds"]) == list(MODEL.parameter_names(design))
        assert min(diagnostics["noise_in_posterior_sds"].values()) >= 0
        assert diagnostics["represents_every_direction"] is (plan.size >= MODEL.smallest_exact)
        assert diagnostics["effective_size"] == pytest.approx(
            points.weight.sum() ** 2 / np.square(points.weight).sum(), 1e-3
        )
        assert diagnostics["total_weight"] == pytest.approx(points.weight.sum(), rel=1e-3)

    def test_too_few_points_are_reported(self, method_id: str) -> None:
        request = replace(_request(method_id), size=MODEL.smallest_exact - 1)
        plan = find_private_method(method_id).plan(request, facts(60))
        points = run_points(plan, facts(60), _Answers(1.0), make_monte_carlo_generator(), lambda _: None)
        assert points.diagnostics["represents_every_direction"] is False
        assert any(str(MODEL.smallest_exact) in warning for warning in plan.warnings)

    @pytest.mark.parametrize("value", [0.0, 1.0, 1e6, 1e30])
    def test_run_needs_no_rows_and_survives_any_answer(self, method_id: str, value: float) -> None:
        """W3, W14: a run over pure noise of any size ends with finite points."""
        plan = _plan(method_id)
        _check(run_points(plan, facts(60), _Answers(value), make_monte_carlo_generator(), lambda _: None), plan.size)


@pytest.mark.parametrize("method_id", PUBLIC)
class TestPublicMethods:
    """Laws of methods that read rows."""

    def test_public_method_has_no_price(self, method_id: str) -> None:
        plan = _plan(method_id)
        assert plan.events == (NonPrivateEvent(),)
        assert plan.mechanism is None

    def test_public_method_is_refused_on_private_data(self, method_id: str) -> None:
        """W8: it has no reservation."""
        with pytest.raises(MethodNotAllowedOnPrivateData):
            find_method(method_id).plan(_request(method_id), facts(60))
        with pytest.raises(ValueError, match="public"):
            run_public(_plan(method_id), facts(60), table(60), make_monte_carlo_generator())
        with pytest.raises(InvalidRequest):
            find_private_method(method_id)

    @pytest.mark.long
    def test_release_of_all_that_was_requested_has_no_doubt(self, method_id: str) -> None:
        """The mean has no noise; the grade follows the divergence from the table's posterior."""
        points = run_public(
            _plan(method_id), facts(60, sensitivity="public"), table(50, slots=60), make_monte_carlo_generator()
        )
        assert not np.any(points.doubt)
        assert points.diagnostics["fit_kl"] >= 0
        assert points.reliability is not None
        assert points.reliability.is_calibrated is (points.diagnostics["fit_kl"] <= 1)

    @pytest.mark.long
    @pytest.mark.parametrize("rows", [0, 3, 50])
    def test_release_has_the_requested_size(self, method_id: str, rows: int) -> None:
        declared = facts(60, sensitivity="public")
        plan = _plan(method_id)
        _check(run_public(plan, declared, table(rows, slots=60), make_monte_carlo_generator()), plan.size)

    def test_every_parameter_is_filled_in_and_checked(self, method_id: str) -> None:
        """A plan has all inputs of a run; the error for a value out of range points to it."""
        knobs = {knob.name: knob for knob in find_method(method_id).parameters}
        plan = _plan(method_id)
        assert set(plan.parameters) == {name for name, knob in knobs.items() if knob.default is not None}
        for name, value in plan.parameters.items():
            knobs[name].check(value, "/parameters")
            request = _request(method_id, parameters={name: []})
            with pytest.raises(InvalidRequest) as caught:
                find_method(method_id).plan(request, facts(60, sensitivity="public"))
            assert caught.value.faults[0].pointer == f"/parameters/{name}"

    @pytest.mark.long
    def test_units_of_several_rows_count_row_by_row(self, method_id: str) -> None:
        """60 rows of 20 people give the same release as rows of 60 people."""
        alone, shared = (
            facts(60, sensitivity="public"),
            replace(facts(20, sensitivity="public"), unit={"kind": "column", "column": "name", "max_rows": 3}),
        )
        releases = [
            run_public(
                find_method(method_id).plan(_request(method_id), declared),
                declared,
                Table(table(50, slots=60).columns, rows_per_slot=60 // declared.slots),
                np.random.default_rng(3),
            )
            for declared in (alone, shared)
        ]
        np.testing.assert_array_equal(releases[0].u, releases[1].u)
        np.testing.assert_array_equal(releases[0].weight, releases[1].weight)


def test_unknown_methods_are_refused() -> None:
    for find, name in ((find_method, "nope"), (find_private_method, "uniform"), (find_public_method, "dp-psvi")):
        with pytest.raises(InvalidRequest) as caught:
            find(name)
        assert caught.value.faults[0].pointer == "/method"


@pytest.mark.parametrize("method_id", ["dp-psvi", *PUBLIC])
def test_plan_stored_before_queries_had_kinds_is_read(method_id: str) -> None:
    """Jobs are in flight when a version changes; in the old version every query was a sum of potentials."""
    plan = _plan(method_id)
    stored = plan_json.to_json(plan)
    del stored["queries"]
    stored |= {"answer_length": plan.answer_length, "events": [to_json(event) for event in plan.events]}
    assert plan_json.from_json(json.loads(json.dumps(stored))) == plan
