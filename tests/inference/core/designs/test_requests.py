"""Terms in requests: faults with their pointers, names, priors by term, and plans as JSON."""

import json
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from app.errors import InvalidRequest
from app.inference.core import plan_json
from app.inference.core.design import MAX_TERMS
from app.inference.core.designs import (
    Feature,
    Fourier,
    Interaction,
    Network,
    Polynomial,
    Spline,
    feature_from_json,
    feature_to_json,
)
from app.inference.core.designs.network import Layer
from app.inference.core.facts import Column
from app.inference.core.plan import ModelSpec, PlanRequest, PriorSpec
from app.inference.core.problems import make_problem, name_parameters
from app.inference.registry import find_method
from tests.inference.core.designs.features import COLUMNS, LAYERS, TERMS, make_facts

WIDE = Column("wide", "categorical", categories=tuple(map(str, range(1100))))
ONE = Column("one", "categorical", categories=("x",))
ODD = Column("odd", "categorical", categories=("x", "b", "b:cost"))


def _spec(*features: Feature, prior: PriorSpec = PriorSpec()) -> ModelSpec:  # noqa: B008  (frozen)
    return ModelSpec("logistic-regression", features, "ill", prior)


def _fourier(*columns: str, **members: Any) -> Fourier:
    return replace(Fourier(columns, 4, 1.0, 0), **members)


def _network(*layers: Layer) -> Network:
    return Network(("age",), layers)


def _layer(units: int, inputs: int, weight: float = 0.5, **members: Any) -> Layer:
    return replace(Layer(((weight,) * inputs,) * units, (0.0,) * units, "tanh"), **members)


FAULTS: dict[str, tuple[tuple[Feature, ...], str]] = {
    "unknown member": ((Interaction(("age", "nope")),), "/model/features/0/interaction/1"),
    "the target": (("age", Interaction(("ill", "hours"))), "/model/features/1/interaction/0"),
    "one member": ((Interaction(("age",)),), "/model/features/0/interaction"),
    "five members": ((Interaction(("age", "hours", "sex", "job", "cost")),), "/model/features/0/interaction"),
    "a member twice": ((Interaction(("age", "sex", "age")),), "/model/features/0/interaction/2"),
    "a constant member": ((Interaction(("age", "fixed")),), "/model/features/0/interaction/1"),
    "one category": ((Interaction(("age", "one")),), "/model/features/0/interaction/1"),
    "the same interaction": (
        (Interaction(("age", "sex")), "age", Interaction(("sex", "age"))),
        "/model/features/2",
    ),
    "too wide": ((Interaction(("wide", "job")),), "/model/features/0/interaction"),
    "a curve of an unknown column": (
        (Interaction(("sex", Spline("nope", 4))),),
        "/model/features/0/interaction/1/spline",
    ),
    "a category's curve as a member": (
        (Interaction((Polynomial("sex", 2), "age")),),
        "/model/features/0/interaction/0/polynomial",
    ),
    "a member's df": (("sex", Interaction(("sex", Spline("age", 2)))), "/model/features/1/interaction/1/df"),
    "a member's knot": ((Interaction((Spline("age", 4, (90.0,)), "sex")),), "/model/features/0/interaction/0/knots/0"),
    "a member's degree": ((Interaction((Polynomial("age", 13), "sex")),), "/model/features/0/interaction/0/degree"),
    "a column and its curve": ((Interaction(("age", Spline("age", 4))),), "/model/features/0/interaction/1/spline"),
    "two curves of the same columns": (
        (Interaction((Spline("age", 4), "sex")), "sex", Interaction(("sex", "age"))),
        "/model/features/2",
    ),
    "too wide by its curve": ((Interaction(("wide", Spline("age", 3))),), "/model/features/0/interaction"),
    "too many knots": (
        (Interaction((Spline("age", 40), Spline("hours", 40))),),
        "/model/features/0/interaction",
    ),
    "unknown column": ((Polynomial("nope", 2),), "/model/features/0/polynomial"),
    "a category's polynomial": ((Polynomial("sex", 2),), "/model/features/0/polynomial"),
    "a constant's polynomial": ((Polynomial("fixed", 2),), "/model/features/0/polynomial"),
    "degree zero": ((Polynomial("age", 0),), "/model/features/0/degree"),
    "degree too large": ((Polynomial("age", 13),), "/model/features/0/degree"),
    "column and polynomial": (("age", Polynomial("age", 2)), "/model/features/1"),
    "polynomial and spline": ((Polynomial("age", 2), "hours", Spline("age", 4)), "/model/features/2"),
    "a flag's spline": ((Spline("smoker", 4),), "/model/features/0/spline"),
    "too few columns": ((Spline("age", 2),), "/model/features/0/df"),
    "too many columns": (("sex", "job", "cost", Spline("age", 51)), "/model/features/3/df"),
    "df and knots": ((Spline("age", 4, (30.0, 40.0)),), "/model/features/0/df"),
    "a knot at the bound": ((Spline("age", 4, (20.0,)),), "/model/features/0/knots/0"),
    "a knot beyond": ((Spline("age", 5, (30.0, 90.0)),), "/model/features/0/knots/1"),
    "knots out of order": ((Spline("age", 5, (60.0, 30.0)),), "/model/features/0/knots/1"),
    "knots that coincide": ((Spline("age", 5, (60.0, 60.0)),), "/model/features/0/knots/1"),
    "a knot that is no number": ((Spline("age", 4, (float("nan"),)),), "/model/features/0/knots/0"),
    "no column": ((_fourier(),), "/model/features/0/fourier"),
    "one unit": ((_fourier("age", units=1),), "/model/features/0/units"),
    "too many units": ((_fourier("age", units=1001),), "/model/features/0/units"),
    "too short": ((_fourier("age", length=0.01),), "/model/features/0/length"),
    "no length": ((_fourier("age", length=float("nan")),), "/model/features/0/length"),
    "a negative number": ((_fourier("age", number=-1),), "/model/features/0/seed"),
    "a constant input": ((_fourier("age", "fixed"),), "/model/features/0/fourier/1"),
    "too many inputs": ((_fourier("wide"),), "/model/features/0/fourier"),
    "the same draw": ((_fourier("age"), _fourier("age")), "/model/features/1"),
    "no layer": ((_network(),), "/model/features/0/layers"),
    "five layers": ((_network(*[_layer(1, 1)] * 5),), "/model/features/0/layers"),
    "a layer of another width": ((_network(_layer(3, 1), _layer(2, 2)),), "/model/features/0/layers/1/weights/0"),
    "too steep": ((_network(_layer(2, 1, 200.0), _layer(1, 2, 200.0)),), "/model/features/0/layers"),
    "weights too large": ((_network(_layer(1, 1, 1e300)),), "/model/features/0/layers/0/weights/0"),
    "biases too few": ((_network(_layer(2, 1, bias=(0.0,))),), "/model/features/0/layers/0/bias"),
    "a bias that is no number": (
        (_network(_layer(1, 1, bias=(float("nan"),))),),
        "/model/features/0/layers/0/bias",
    ),
    "an unbounded activation": (
        (_network(_layer(1, 1, activation="relu")),),
        "/model/features/0/layers/0/activation",
    ),
    "two networks": ((_network(_layer(1, 1)), _network(_layer(1, 1))), "/model/features/1"),
    "names that collide": (("odd", Interaction(("odd", "cost"))), "/model/features/1"),
    "too many terms": (tuple(_fourier("age", number=each) for each in range(MAX_TERMS + 1)), "/model/features"),
    "too many numbers": (tuple(_fourier("age", units=1000, number=each) for each in range(11)), "/model/features"),
}


@pytest.mark.parametrize("name", FAULTS)
def test_a_faulty_term_is_refused_with_its_pointer(name: str) -> None:
    features, pointer = FAULTS[name]
    facts = replace(make_facts(), columns=(*COLUMNS, WIDE, ONE, ODD))
    with pytest.raises(InvalidRequest) as caught:
        make_problem(_spec(*features), facts)
    (fault,) = caught.value.faults
    assert fault.pointer == pointer
    assert fault.message.endswith(".")


def test_a_mean_takes_no_terms() -> None:
    with pytest.raises(InvalidRequest) as caught:
        make_problem(ModelSpec("gaussian-mean", ("age", Interaction(("hours", "cost"))), None), make_facts())
    assert caught.value.faults[0].pointer == "/model/features/1"


@pytest.mark.parametrize("name", TERMS)
def test_features_survive_json(name: str) -> None:
    for feature in TERMS[name]:
        stored = json.loads(json.dumps(feature_to_json(feature)))
        assert feature_from_json(stored) == feature


def test_defaults_of_a_request_are_filled_in() -> None:
    assert feature_from_json({"spline": "age", "knots": [30, 40]}) == Spline("age", 5, (30.0, 40.0))
    assert feature_from_json({"spline": "age"}) == Spline("age", 3)
    assert feature_from_json({"fourier": ["age"], "units": 5}) == Fourier(("age",), 5, 1.0, 0)


def test_a_plan_of_names_has_the_json_of_earlier_versions() -> None:
    """W11: reservations are signed over this JSON, so names serialise as before there were terms."""
    request = PlanRequest("dp-psvi-surrogate", 20, _spec("age", "sex"), noise_multiplier=3.0)
    stored = plan_json.to_json(find_method("dp-psvi-surrogate").plan(request, make_facts()))["model"]
    expected: dict[str, Any] = {
        "family": "logistic-regression",
        "features": ["age", "sex"],
        "target": "ill",
        "prior": {"scale": 1.0, "scales": {}, "degrees_of_freedom": None},
        "noise_scale": None,
    }
    assert json.dumps(stored) == json.dumps(expected)


@pytest.mark.parametrize("method", ["dp-psvi-surrogate", "dp-psvi", "dp-vi"])
def test_a_plan_with_terms_survives_json(method: str) -> None:
    request = PlanRequest(method, 40, _spec(*TERMS["all"]), noise_multiplier=3.0)
    plan = find_method(method).plan(request, make_facts())
    assert plan_json.from_json(json.loads(json.dumps(plan_json.to_json(plan)))) == plan


def test_a_model_reads_the_columns_of_its_terms() -> None:
    assert _spec(*TERMS["all"]).columns == ("age", "sex", "smoker", "job", "hours", "ill")


def test_parameters_have_the_names_of_terms() -> None:
    names = name_parameters(make_problem(_spec("job", Spline("age", 3), Interaction(("sex", "cost"))), make_facts()))
    assert names == (
        "job=b",
        "job=c",
        "bs(age, 3)[1]",
        "bs(age, 3)[2]",
        "bs(age, 3)[3]",
        "sex=M:cost",
        "intercept",
    )


def test_priors_are_set_by_term_column_or_parameter() -> None:
    """A parameter has precedence over a design column, which has it over a term."""
    scales = {"bs(age, 3)": 0.5, "bs(age, 3)[2]": 0.25, "sex:cost": 3.0, "job": 2.0, "intercept": 9.0}
    spec = _spec("job", Spline("age", 3), Interaction(("sex", "cost")), prior=PriorSpec(1.0, scales))
    prior = make_problem(spec, make_facts()).prior
    deviations = 1 / np.sqrt(prior.precision(np.zeros(7)).diagonal())
    np.testing.assert_allclose(deviations, [2, 2, 0.5, 0.25, 0.5, 3, 9])
    with pytest.raises(InvalidRequest) as caught:  # a column of a term is no feature
        make_problem(replace(spec, prior=PriorSpec(1.0, {"cost": 2.0})), make_facts())
    assert caught.value.faults[0].pointer == "/model/prior/scales"


def test_a_design_with_terms_states_what_its_columns_share_once() -> None:
    design = make_problem(_spec(*TERMS["all"], Network(("hours", "age", "job"), LAYERS)), make_facts()).design
    for column in design.columns:
        shared = column.transform.get("shared_with")
        if shared is not None:
            first = next(each for each in design.columns if each.name == shared)
            assert first.term == column.term
            assert "inputs" in first.transform
            assert "inputs" not in column.transform
