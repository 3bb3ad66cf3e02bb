"""``GET /v1/methods``."""

import httpx
import pytest

from tests.factories import rows
from tests.factories.datasets import problem


@pytest.mark.parametrize("role", ["admin", "owner", "analyst", "auditor"])
def test_every_key_may_list_the_methods(client: httpx.Client, role: str, request: pytest.FixtureRequest) -> None:
    key: rows.Key = request.getfixturevalue(role)
    body = client.get("/v1/methods", headers=key.headers).json()
    private = {method["id"]: method["may_run_on_private_data"] for method in body["methods"]}
    assert (private["dp-psvi"], private["uniform"]) == (True, False)
    assert {name for name, allowed in private.items() if not allowed} == {
        "beta-cores",
        "frank-wolfe",
        "giga",
        "incremental-psvi",
        "omp",
        "scmc",
        "psvi",
        "sparse-vi",
        "uniform",
    }
    assert "logistic-regression" in [model["family"] for model in body["models"]]
    assert [method["id"] for method in body["methods"] if method["default"]] == ["dp-psvi-surrogate"]


def test_parameters_have_a_closed_schema_without_a_seed(client: httpx.Client, analyst: rows.Key) -> None:
    """W7: no caller can set a seed."""
    body = client.get("/v1/methods", headers=analyst.headers).json()
    for method in body["methods"]:
        schema = method["parameters"]
        assert (schema["type"], schema["additionalProperties"]) == ("object", False)
        assert not any("seed" in name for name in schema["properties"])
    schemas = {method["id"]: method["parameters"]["properties"] for method in body["methods"]}
    assert schemas["giga"]["weighting"]["enum"] == ["optimal", "realistic", "laplace"]
    assert set(schemas["dp-vi"]) >= {"clip", "learning_rate", "average", "covariance", "iterations", "sampling_rate"}
    (dp_psvi,) = (method for method in body["methods"] if method["id"] == "dp-psvi")
    known = {"posterior_draws", "iterations", "sampling_rate", "schedule", "within_bounds", "steps", "learning_rate"}
    known |= {"beta"}
    assert set(dp_psvi["parameters"]["properties"]) == known


def test_settings_of_a_model_have_schemas(client: httpx.Client, analyst: rows.Key) -> None:
    body = client.get("/v1/methods", headers=analyst.headers).json()
    settings = {model["family"]: model["settings"] for model in body["models"]}
    topics = settings["latent-dirichlet-allocation"]
    assert set(topics) == {"topics", "document_concentration", "topic_concentration"}
    assert (topics["topics"]["minimum"], topics["topics"]["maximum"], topics["topics"]["default"]) == (2, 200, 20)
    assert settings["sigmoid-belief-network"]["hidden_units"]["type"] == "integer"
    assert settings["logistic-regression"] == {}


def test_without_a_key_the_methods_are_not_listed(client: httpx.Client) -> None:
    problem(client.get("/v1/methods"), 401, "unauthenticated")
