"""Random declarations, also degenerate ones, and random requests on them."""

from dataclasses import dataclass
from typing import Any

from hypothesis import strategies as st
from hypothesis.strategies import DrawFn, SearchStrategy

from app.inference import registry

MODERATE = 1e4
"""The largest bound and width of numeric targets; its inverse is the least width."""
_WIDTHS = st.sampled_from([1e-99, 1e-9, 0.5, 1.0, 100.0, 1e9, 1e99])
_TARGETS: dict[str, str | None] = {
    "logistic-regression": "sick",
    "probit-regression": "sick",
    "linear-regression": "dose",
    "student-t-regression": "dose",
    "poisson-regression": "visits",
    "negative-binomial-regression": "visits",
    "multinomial-logistic": "group",
    "gaussian-mean": None,
    "gaussian": None,
}


@dataclass(frozen=True)
class Case:
    """A declaration and a request on it, as JSON bodies.

    Attributes:
        declaration: of the dataset.
        request: without ``dataset_id``.
        share: of slots that have a row.
        extreme: whether all values are on their bounds.
        state: of the generator of rows.
    """

    declaration: dict[str, Any]
    request: dict[str, Any]
    share: float
    extreme: bool
    state: int


@st.composite
def cases(draw: DrawFn) -> Case:
    features = draw(st.lists(_feature(), min_size=1, max_size=4))
    columns = [{**column, "name": f"x{place}"} for place, column in enumerate(features)]
    people = draw(st.booleans())
    unit = {"kind": "column", "column": "person", "max_rows": draw(st.sampled_from([1, 2, 5]))}
    return Case(
        declaration={
            "name": "random",
            "sensitivity": "private",
            "columns": [*columns, *draw(_targets()), {"name": "person", "type": "integer", "lower": 0, "upper": 9}],
            "privacy_unit": unit if people else {"kind": "row"},
            "slots": draw(st.one_of(st.integers(1, 3), st.integers(1, 2000))),
            "budget": {"epsilon": draw(st.sampled_from([0.5, 2.0, 8.0]))},
        },
        request=draw(_request([column["name"] for column in columns])),
        share=draw(st.sampled_from([0.0, 0.05, 1.0])),
        extreme=draw(st.booleans()),
        state=draw(st.integers(0, 2**32)),
    )


def _feature() -> SearchStrategy[dict[str, Any]]:
    categories = st.sampled_from([1, 1, 2, 3, 6]).map(lambda count: [f"level {each}" for each in range(count)])
    return st.one_of(
        st.just({"type": "binary"}),
        st.builds(lambda levels: {"type": "categorical", "categories": levels}, categories),
        st.builds(_number, st.just("real"), st.sampled_from([0.0, -1.0, 1e5]), _WIDTHS, st.booleans()),
        st.builds(_number, st.just("integer"), st.integers(-5, 5), st.integers(0, 3), st.booleans()),
        st.just({"type": "integer", "lower": -(2**53) + 1, "upper": 2**53 - 1}),
    )


def _number(kind: str, lower: float, width: float, imputes: bool) -> dict[str, Any]:
    column = {"type": kind, "lower": lower, "upper": lower + width}
    return {**column, "missing": {"impute": lower}} if imputes else column


@st.composite
def _targets(draw: DrawFn) -> list[dict[str, Any]]:
    lower, width = draw(st.floats(-MODERATE, MODERATE)), draw(st.floats(1 / MODERATE, MODERATE))
    levels = draw(st.integers(1, 4))
    return [
        {"name": "sick", "type": "binary"},
        {"name": "dose", "type": "real", "lower": lower, "upper": lower + width},
        {"name": "visits", "type": "integer", "lower": 0, "upper": draw(st.sampled_from([1, 30, int(MODERATE)]))},
        {"name": "group", "type": "categorical", "categories": [f"class {each}" for each in range(levels)]},
    ]


@st.composite
def _request(draw: DrawFn, names: list[str]) -> dict[str, Any]:
    family = draw(st.sampled_from(sorted(_TARGETS)))
    method = draw(st.sampled_from([each.id for each in registry.list_methods() if each.private]))
    prior: dict[str, Any] = {"scale": draw(st.sampled_from([1e-3, 1.0, 1e3]))}
    if draw(st.booleans()):
        prior["degrees_of_freedom"] = draw(st.sampled_from([1.0, 3.0, 30.0]))
    model: dict[str, Any] = {
        "family": family,
        "features": draw(st.lists(st.sampled_from(names), min_size=1, unique=True) | _features_with_terms(names)),
        "prior": prior,
    }
    if _TARGETS[family] is not None:
        model["target"] = _TARGETS[family]
    if registry.find_family(family).noise_scale and draw(st.integers(0, 4)):
        model["noise_scale"] = draw(st.sampled_from([1e-3, 1.0, 100.0]))
    privacy = draw(st.one_of(_targets_of_epsilon(), _mechanisms()))
    stated = {"iterations", "rounds", "sampling_rate"} if "epsilon" not in privacy else set()
    parameters = draw(_parameters(method, stated))
    if method == "dp-groups":
        parameters |= {"groups": draw(st.lists(st.sampled_from(["sick", "group"]), min_size=1, unique=True))}
    return {
        "method": method,
        "size": draw(st.sampled_from([1, 2, 3, 5, 12, 40])),
        "model": model,
        "privacy": privacy,
        "parameters": parameters,
    }


@st.composite
def _features_with_terms(draw: DrawFn, names: list[str]) -> list[Any]:
    """Names and terms; many of these do not fit the declaration or one another, and are refused."""
    name = st.sampled_from(names)
    several = st.lists(name, min_size=1, max_size=4, unique=True)
    layer = {"weights": [[0.5] * draw(st.integers(1, 3))] * 2, "bias": [0.1, -2.0], "activation": "tanh"}
    terms = [
        st.builds(lambda each, degree: {"polynomial": each, "degree": degree}, name, st.integers(1, 5)),
        st.builds(lambda each, df: {"spline": each, "df": df}, name, st.integers(2, 7)),
        st.builds(lambda each, knot: {"spline": each, "knots": [knot]}, name, st.sampled_from([0.0, 0.25, 1e5])),
        st.builds(lambda each, units: {"fourier": each, "units": units, "seed": 3}, several, st.integers(1, 6)),
        st.builds(lambda each: {"network": each, "layers": [layer]}, several),
    ]
    if len(names) > 1:
        members = st.lists(name, min_size=2, max_size=4, unique=True)
        terms.append(st.builds(lambda each: {"interaction": each}, members))
        curved = st.tuples(st.sampled_from(terms[:3]).flatmap(lambda each: each), name)
        terms.append(st.builds(lambda each: {"interaction": list(each)}, curved))
    plain = draw(st.lists(name, max_size=2, unique=True))
    return [*plain, *draw(st.lists(st.one_of(terms), min_size=1, max_size=3))]


def _targets_of_epsilon() -> SearchStrategy[dict[str, Any]]:
    return st.builds(lambda epsilon: {"epsilon": epsilon}, st.sampled_from([0.01, 0.3, 1.0, 4.0]))


def _mechanisms() -> SearchStrategy[dict[str, Any]]:
    mechanism = {
        "noise_multiplier": st.sampled_from([3.0, 10.0, 50.0, 1e3, 1e6]),
        "sampling_rate": st.sampled_from([1e-3, 0.3, 1.0]),
        "iterations": st.sampled_from([1, 2, 3, 13, 27, 28]),
    }
    return st.fixed_dictionaries(mechanism)


@st.composite
def _parameters(draw: DrawFn, method: str, stated: set[str]) -> dict[str, Any]:
    """Some of the method's parameters, and always ``iterations``, because the default is hundreds."""
    chosen: dict[str, Any] = {}
    for knob in registry.find_method(method).parameters:
        schema = knob.schema()
        if (
            schema["type"] in {"array", "object"}
            or knob.name in stated
            or (knob.name != "iterations" and draw(st.integers(0, 2)))
        ):
            continue
        if knob.name == "iterations":
            chosen[knob.name] = draw(st.integers(1, 30))
        elif "enum" in schema:
            chosen[knob.name] = draw(st.sampled_from(schema["enum"]))
        elif schema["type"] == "boolean":
            chosen[knob.name] = draw(st.booleans())
        elif schema["type"] == "integer":
            chosen[knob.name] = draw(st.integers(int(schema["minimum"]), min(int(schema["maximum"]), 40)))
        else:
            chosen[knob.name] = draw(st.sampled_from([1e-3, 0.3, 1.0]))
    return chosen
