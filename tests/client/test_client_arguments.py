"""Invalid arguments raise an error with a remedy before any request."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest
from corevault import Client, LogisticRegression, Mechanism, Schema, binary, categorical, design_matrix, real

from tests.client.fake import JOB, Published, Script, ok

MODEL = LogisticRegression(features=["age"], target="seen")
SCHEMA = Schema(real("age", 0, 10))
NOISY: dict[str, Any] = {"noise_multiplier": 1.0, "sampling_rate": 1.0, "iterations": 5}


def _submit(client: Client, model: Any = MODEL, **changes: Any) -> object:
    return client.jobs.submit("ds_1", model, **{"size": 3, "epsilon": 0.5} | changes)


def _create(client: Client, schema: Any = SCHEMA, **changes: Any) -> object:
    return client.datasets.create("visits", schema, **{"slots": 10, "epsilon": 1.0} | changes)


CALLS: dict[str, tuple[Callable[[Client], object], type[Exception], str]] = {
    "a model's name": (lambda client: _submit(client, "logistic"), TypeError, "model must be a model such as .* str"),
    "a model's class": (lambda client: _submit(client, LogisticRegression), TypeError, "class LogisticRegression"),
    "nan": (lambda client: _submit(client, epsilon=math.nan), ValueError, "privacy.epsilon must be a finite number"),
    "a dict of noise": (lambda client: _submit(client, epsilon=None, mechanism=NOISY), TypeError, "be a Mechanism"),
    "infinite noise": (
        lambda client: _submit(client, epsilon=None, mechanism=Mechanism(**NOISY | {"noise_multiplier": math.inf})),
        ValueError,
        "privacy.noise_multiplier must be a finite number",
    ),
    "parameters in a list": (lambda client: _submit(client, parameters=["rounds"]), TypeError, "parameters must be"),
    "a set": (lambda client: _submit(client, parameters={"rounds": {1}}), TypeError, "parameters.rounds must be"),
    "quote": (lambda client: client.quote("ds_1", "x", size=3), TypeError, "model must be a model such as"),  # type: ignore[arg-type]
    "columns in a dict": (lambda client: _create(client, {"age": "real"}), TypeError, "schema must be a Schema.* dict"),
    "columns in a list": (lambda client: _create(client, [real("age", 0, 1)]), TypeError, "schema must be a Schema"),
    "infinite bound": (
        lambda client: _create(client, Schema(binary("seen"), real("age", 0, math.inf))),
        ValueError,
        r"columns\[1\]\.upper must be a finite number",
    ),
    "infinite budget": (
        lambda client: _create(client, epsilon=math.inf),
        ValueError,
        "budget.epsilon must be a finite",
    ),
    "a unit's name": (lambda client: _create(client, privacy_unit="row"), TypeError, "privacy_unit must be a mapping"),
    "a new budget": (
        lambda client: client.datasets.set_budget("ds_1", epsilon=math.nan),
        ValueError,
        "epsilon must be a finite number",
    ),
}


@pytest.mark.parametrize("name", CALLS)
def test_an_invalid_call_sends_nothing(name: str) -> None:
    call, kind, sentence = CALLS[name]
    script = Script([ok({})])
    with script.client() as client, pytest.raises(kind, match=sentence):
        call(client)
    assert not script.seen


def test_numpy_numbers_are_sent_as_numbers() -> None:
    script = Script([ok(JOB | {"status": "queued"}, 202)])
    with script.client() as client:
        _submit(client, size=np.int64(3), epsilon=np.float32(0.5), parameters={"rounds": np.int32(8)})
        _submit(client, parameters={"rounds": 8})
    assert script.bodies[0] == script.bodies[1]


def test_a_list_of_columns_as_a_schema_is_refused() -> None:
    with pytest.raises(TypeError, match=r"one by one.* list"):
        Schema([real("age", 0, 10)])  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="list of texts"):
        categorical("sex", "Female")


def test_a_duplicate_column_name_is_refused_by_the_check() -> None:
    with pytest.raises(ValueError, match="appears twice in the table"):
        SCHEMA.check(pd.DataFrame([[1, 2]], columns=["age", "age"]))


def test_new_rows_need_a_table_with_the_columns_of_the_design() -> None:
    design = Published().parts()[0].design
    assert [column.name for column in design] == ["age", "sex=Male", "intercept"]
    for table in ({"sex": ["Male"]}, pd.DataFrame({"sex": ["Male"]})):
        with pytest.raises(KeyError, match="has no column 'age', from which"):
            design_matrix(design, table)
    for other in ("file.csv", np.ones((2, 2)), [[1.0]]):
        with pytest.raises(TypeError, match=r"Pass a pandas DataFrame, .* or a mapping"):
            design_matrix(design, other)  # type: ignore[arg-type]
