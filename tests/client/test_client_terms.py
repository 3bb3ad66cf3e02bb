"""Terms: the client makes the requests that the server takes, and computes the server's design columns."""

import json
from typing import Any, cast

import numpy as np
import pandas as pd
import pytest
from corevault import (
    Column,
    DesignColumn,
    InvalidArgument,
    LogisticRegression,
    Schema,
    WrongType,
    design_matrix,
    fourier,
    interaction,
    network,
    polynomial,
    spline,
)
from corevault.weighted_model import make_prior
from numpy.typing import NDArray

from app.inference.core.design import Design
from app.inference.core.designs import feature_to_json
from app.inference.core.plan import ModelSpec
from app.inference.core.problems import make_problem
from app.jobs.schemas import ModelBody
from app.releases.statement import make_design_json
from tests.client.models import make_core
from tests.inference.core.designs.features import COLUMNS, LAYERS, TERMS, draw_table, make_facts

SCHEMA = Schema(
    *(
        Column(each.name, each.type, each.lower, each.upper, each.categories or None, impute=each.impute)
        for each in COLUMNS
        if each.name != "fixed"
    )
)
MODELS = (
    "ill ~ age * C(sex) + bs(hours, df=5)",
    "ill ~ poly(age, 4) + bs(cost, knots=[0, 10.5, 100]) + job:smoker",
    "ill ~ age:hours:sex:smoker",
    "ill ~ bs(age, df=4) * C(sex) + poly(hours, 2):smoker",
)


def _publish(design: Design) -> list[DesignColumn]:
    """The design columns that a client reads from a release."""
    stated = json.loads(json.dumps(make_design_json(design.columns)))
    return [DesignColumn.from_json(column) for column in stated]


def _write(table: dict[str, NDArray[Any]]) -> dict[str, Any]:
    """The cells of a gathered table, as their owner has them."""
    labels = {each.name: np.array(each.categories) for each in COLUMNS if each.categories}
    return {name: labels[name][values] if name in labels else values for name, values in table.items()}


@pytest.mark.parametrize("name", TERMS)
@pytest.mark.parametrize("schema", [None, SCHEMA])
def test_new_rows_have_the_coordinates_of_the_server(name: str, schema: Schema | None) -> None:
    """W6: the release states all that the columns are made of. They agree with single precision to 1e-6."""
    design = make_problem(ModelSpec("logistic-regression", TERMS[name], "ill"), make_facts()).design
    table = draw_table(np.random.default_rng(1), 400)
    for column in COLUMNS:
        if column.lower is not None:
            table[column.name][:3] = (column.lower, column.upper, 1e9)
    expected = design.encode(table)[0]
    found = design_matrix(_publish(design), _write(table), schema=schema)
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-6)
    frame = pd.DataFrame(_write(table))
    np.testing.assert_array_equal(design_matrix(_publish(design), frame, schema=schema), found)


@pytest.mark.parametrize("name", ["all", "four", "spline", "fourier", "network", "polynomial"])
def test_a_missing_cell_makes_a_row_of_nan(name: str) -> None:
    design = make_problem(ModelSpec("logistic-regression", TERMS[name], "ill"), make_facts()).design
    table = draw_table(np.random.default_rng(2), 5)
    cells = _write(table) | {"age": [None, *table["age"][1:]]}
    matrix = design_matrix(_publish(design), cells, schema=SCHEMA, null_rows="nan")
    assert np.isnan(matrix[0]).all()
    np.testing.assert_allclose(matrix[1:], design.encode(table)[0][1:], atol=1e-6)
    with pytest.raises(InvalidArgument, match="'age' has missing values"):
        design_matrix(_publish(design), cells, schema=SCHEMA)


@pytest.mark.parametrize("formula", MODELS)
def test_formulas_make_requests_that_the_server_takes(formula: str) -> None:
    body = LogisticRegression.formula(formula, schema=SCHEMA).to_json()
    spec = ModelBody.model_validate_json(json.dumps(body)).spec()
    design = make_problem(spec, make_facts()).design
    table = draw_table(np.random.default_rng(3), 50)
    np.testing.assert_allclose(design_matrix(_publish(design), _write(table)), design.encode(table)[0], atol=1e-6)


def test_helpers_make_requests_that_the_server_takes() -> None:
    layers = [
        {"weights": np.array(each.weights), "bias": np.array(each.bias), "activation": each.activation}
        for each in LAYERS
    ]
    features = [
        "smoker",
        interaction("age", "sex"),
        polynomial("cost", 3),
        spline("hours", 4),
        fourier(("age", "visits"), 5, length=0.5, draw=11),
        network(["age", "hours", "job"], layers),
    ]
    body = LogisticRegression(features=features, target="ill", prior_scales={"age:sex": 0.5}).to_json()
    spec = ModelBody.model_validate_json(json.dumps(body)).spec()
    assert make_problem(spec, make_facts()).design.width > len(features)
    made = [feature_to_json(feature) for feature in spec.features]
    assert made == json.loads(json.dumps(body["features"]))


@pytest.mark.parametrize(
    "feature", [7, {"splines": "age"}, None, {"interaction": 7, "x": 1}.keys()], ids=["number", "kind", "none", "keys"]
)
def test_a_feature_that_is_no_term_is_refused(feature: Any) -> None:
    with pytest.raises(WrongType, match="A feature is the name of a column or a term"):
        LogisticRegression(features=["age", feature], target="ill")


def test_names_of_a_term_are_a_list() -> None:
    with pytest.raises(WrongType, match="list of names"):
        fourier("age", 5)
    with pytest.raises(InvalidArgument, match="names of columns"):
        interaction()
    with pytest.raises(WrongType, match="list of mappings"):
        network(["age"], cast(Any, [[1.0]]))


def test_coefficients_of_terms_keep_their_design_units() -> None:
    """Names of columns have the table's units, and the linear predictor is the same."""
    core = make_core(LogisticRegression.formula("ill ~ age + age:colour + bs(hours, 4)", prior_scale=2.0))
    plain, original = core.posterior(), core.posterior().in_original_units()
    assert original.names == plain.names
    np.testing.assert_allclose(original.mean[1:-1], plain.mean[1:-1])
    assert original.mean[0] == pytest.approx(plain.mean[0] / 30)
    rows: dict[str, Any] = {"age": [25, 60], "hours": [10.0, 70.0], "colour": ["red", "blue"]}
    x = core.design_matrix(rows)
    raw = x.copy()
    raw[:, 0] = rows["age"]
    np.testing.assert_allclose(raw @ original.mean, x @ plain.mean)
    assert len(core.predict(rows)) == 2


def test_priors_of_terms_follow_the_release() -> None:
    scales = {"age:colour": 0.25, "bs(hours, 4)": 3.0, "bs(hours, 4)[2]": 7.0}
    core = make_core(LogisticRegression.formula("ill ~ age + age:colour + bs(hours, 4)", prior_scales=scales))
    np.testing.assert_allclose(make_prior(core.release).scales, [1, 0.25, 0.25, 3, 7, 3, 3, 1])
