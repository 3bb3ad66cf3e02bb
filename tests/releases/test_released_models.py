"""Every model over HTTP, from the request to the points of its release."""

from typing import Any

import httpx
import pytest

from tests.factories import rows
from tests.factories.datasets import problem
from tests.factories.worker import House, job_body

MODELS: tuple[dict[str, Any], ...] = (
    {"family": "probit-regression", "features": ["age"], "target": "income_gt_50k", "prior": {"scale": 2.0}},
    {
        "family": "linear-regression",
        "features": ["age", "sex"],
        "target": "hours",
        "prior": {"scale": 1.0, "scales": {"age": 3.0, "sex=Male": 0.5, "log_noise_scale": 2.0}},
    },
    {
        "family": "linear-regression",
        "features": ["age"],
        "target": "hours",
        "prior": {"scale": 1.0, "degrees_of_freedom": 4.0},
        "noise_scale": 12.5,
    },
    {"family": "student-t-regression", "features": ["age"], "target": "hours", "prior": {"scale": 1.0}},
    {
        "family": "student-t-regression",
        "features": ["age"],
        "target": "hours",
        "prior": {"scale": 1.0},
        "noise_scale": 12.5,
        "degrees_of_freedom": 7.0,
    },
    {"family": "poisson-regression", "features": ["hours"], "target": "age", "prior": {"scale": 1.0}},
    {"family": "negative-binomial-regression", "features": ["hours"], "target": "age", "prior": {"scale": 1.0}},
    {
        "family": "negative-binomial-regression",
        "features": ["hours"],
        "target": "age",
        "prior": {"scale": 1.0},
        "dispersion": 0.3,
    },
    {"family": "multinomial-logistic", "features": ["age"], "target": "sex", "prior": {"scale": 1.0}},
    {
        "family": "logistic-regression",
        "features": [
            "sex",
            {"polynomial": "age", "degree": 2},
            {"spline": "hours", "df": 4, "knots": [40.0]},
            {"interaction": ["sex", "age"]},
            {"fourier": ["age", "hours"], "units": 2, "length": 0.5, "seed": 7},
            {
                "network": ["age", "sex"],
                "layers": [{"weights": [[1.5, -0.5]], "bias": [0.25], "activation": "relu-capped"}],
            },
        ],
        "target": "income_gt_50k",
        "prior": {"scale": 1.0, "scales": {"poly(age, 2)": 2.0, "bs(hours, 4)[1]": 0.5}},
    },
    {
        "family": "gaussian-mean",
        "features": ["age", "hours"],
        "target": None,
        "prior": {"scale": 5.0},
        "noise_scale": 0.5,
    },
)
AFFINE = {"kind": "affine", "center": 50.0, "scale": 49.0}
TRANSFORMS = {
    "linear-regression": AFFINE,
    "student-t-regression": AFFINE,
    "multinomial-logistic": {"kind": "index", "categories": ["Female", "Male"]},
}
DEFAULTS = {
    "student-t-regression": {"degrees_of_freedom": 4.0},
    "negative-binomial-regression": {"dispersion": 1.0},
}
"""Members that a release states if the request leaves them out."""
LEAST = {"gaussian-mean": 1}


STUDENT = {"family": "student-t-regression", "features": ["age"], "target": "hours"}

COUNTS = {"family": "negative-binomial-regression", "features": ["hours"], "target": "age"}


@pytest.fixture
def dataset_id(house: House, owner: rows.Key) -> str:
    return house.ready_dataset(owner)


@pytest.mark.long
@pytest.mark.parametrize("model", MODELS, ids=lambda model: model["family"])
def test_a_release_states_its_model_and_shows_its_points(
    house: House, api: httpx.Client, owner: rows.Key, dataset_id: str, model: dict[str, Any]
) -> None:
    body = job_body(dataset_id, model=model)
    quote = api.post("/v1/quotes", json=body, headers=owner.headers).json()
    assert bool(quote["warnings"]) is (quote["size"]["smallest_exact"] > 6)
    job = api.post("/v1/jobs", json=body, headers=owner.headers).json()
    assert job["model"] == model
    house.run(job["id"])
    release_id = api.get(f"/v1/jobs/{job['id']}", headers=owner.headers).json()["release_id"]
    release = api.get(f"/v1/releases/{release_id}").json()
    transform = TRANSFORMS.get(model["family"])
    stated = DEFAULTS.get(model["family"], {}) | model
    assert release["model"] == stated | ({} if transform is None else {"target_transform": transform})
    assert release["certificate"]["statement"]["model"] == release["model"]
    points = api.get(f"/v1/releases/{release_id}/points", params={"format": "json"}).json()
    names = [column["name"] for column in release["design"]]
    assert ("intercept" in names) is (model["family"] != "gaussian-mean")
    assert points["columns"] == [*names, *([] if model["target"] is None else ["y"]), "weight"]
    assert len(points["rows"]) == 6


@pytest.mark.long
@pytest.mark.parametrize("model", MODELS, ids=lambda model: model["family"])
def test_targets_are_rendered_in_their_own_units(
    house: House, api: httpx.Client, owner: rows.Key, dataset_id: str, model: dict[str, Any]
) -> None:
    job = api.post("/v1/jobs", json=job_body(dataset_id, model=model), headers=owner.headers).json()
    house.run(job["id"])
    release_id = house.read(job["id"]).release_id
    points = api.get(f"/v1/releases/{release_id}/points", params={"format": "json"}).json()
    if model["target"] is None:
        return
    targets = [row[points["columns"].index("y")] for row in points["rows"]]
    lower, upper = {"hours": (1, 99), "age": (17, 90)}.get(model["target"], (0, 1))
    assert lower <= min(targets) <= max(targets) <= upper
    # Noise may move all points to one bound. Otherwise they differ.
    assert min(targets) < max(targets) or targets[0] in {lower, upper}
    assert all(isinstance(y, int) for y in targets) is (model["target"] in {"sex", "income_gt_50k"})


_AT, _LAYERS = "/model/features/", "/model/features/0/layers/"
_LAYER: dict[str, Any] = {"weights": [[1.0]], "bias": [0.0], "activation": "tanh"}


@pytest.mark.parametrize(
    ("changes", "pointer"),
    [
        ({"noise_scale": 1.0}, "/model/noise_scale"),
        ({"noise_scale": 0.0}, "/model/noise_scale"),
        ({"noise_scale": "1"}, "/model/noise_scale"),
        ({"degrees_of_freedom": 4.0}, "/model/degrees_of_freedom"),
        ({"dispersion": 1.0}, "/model/dispersion"),
        ({**COUNTS, "dispersion": 1e-4}, "/model/dispersion"),
        ({**COUNTS, "dispersion": 1e4}, "/model/dispersion"),
        ({**COUNTS, "degrees_of_freedom": 4.0}, "/model/degrees_of_freedom"),
        ({"family": "negative-binomial-regression"}, "/model/target"),
        ({"family": "student-t-regression"}, "/model/target"),
        ({**STUDENT, "degrees_of_freedom": 0.5}, "/model/degrees_of_freedom"),
        ({**STUDENT, "degrees_of_freedom": 101}, "/model/degrees_of_freedom"),
        ({**STUDENT, "degrees_of_freedom": -1}, "/model/degrees_of_freedom"),
        ({**STUDENT, "noise_scale": 1e9}, "/model/noise_scale"),
        ({"family": "poisson-regression"}, "/model/target"),
        ({"family": "gaussian-mean"}, "/model/target"),
        ({"family": "gaussian-mean", "target": None, "features": ["sex"]}, "/model/features/0"),
        ({"family": "multinomial-logistic"}, "/model/target"),
        ({"target": None}, "/model/target"),
        ({"prior": {"scales": {"age": 0.0}}}, "/model/prior/scales"),
        ({"prior": {"scales": {"secret_name": 1.0}}}, "/model/prior/scales"),
        ({"prior": {"scales": {"secret_name": "x"}}}, "/model/prior/scales"),
        ({"prior": {"scales": []}}, "/model/prior/scales"),
        ({"prior": {"degrees_of_freedom": -1.0}}, "/model/prior/degrees_of_freedom"),
        ({"features": ["age", "sex", {"interaction": ["age", "sex"]}, {"spline": "hours", "df": 2}]}, _AT + "3/df"),
        ({"features": ["sex", {"spline": "age", "df": 4, "secret_name": 1}]}, _AT + "1"),
        ({"features": ["sex", {"spline": "age", "df": "4"}]}, _AT + "1/df"),
        ({"features": ["sex", {"spline": "age", "knots": [20.0, "x"]}]}, _AT + "1/knots/1"),
        ({"features": ["sex", {"spline": "age", "knots": [50.0, 40.0]}]}, _AT + "1/knots/1"),
        ({"features": [{"spline": "secret_name", "df": 4}]}, _AT + "0/spline"),
        ({"features": [{"polynomial": "age"}]}, _AT + "0/degree"),
        ({"features": [{"polynomial": "age", "degree": 2.5}]}, _AT + "0/degree"),
        ({"features": ["age", {"polynomial": "age", "degree": 2}]}, _AT + "1"),
        ({"features": [{"interaction": ["age"]}]}, _AT + "0/interaction"),
        ({"features": [{"interaction": ["age", "secret_name"]}]}, _AT + "0/interaction/1"),
        ({"features": [{"interaction": ["age", 7]}]}, _AT + "0/interaction/1"),
        ({"features": [{"secret_name": ["age", "sex"]}]}, _AT + "0"),
        ({"features": [7]}, _AT + "0"),
        ({"features": [{"fourier": ["age"], "units": 1}]}, _AT + "0/units"),
        ({"features": [{"fourier": ["age"], "units": 3, "length": 1e-9}]}, _AT + "0/length"),
        ({"features": [{"fourier": ["age"], "units": 3, "seed": -1}]}, _AT + "0/seed"),
        ({"features": [{"network": ["age"], "layers": []}]}, _AT + "0/layers"),
        ({"features": [{"network": ["age"], "layers": [_LAYER | {"activation": "relu"}]}]}, _LAYERS + "0/activation"),
        (
            {"features": [{"network": ["age"], "layers": [_LAYER, _LAYER | {"weights": [[1.0] * 2]}]}]},
            _LAYERS + "1/weights/0",
        ),
        ({"features": [{"network": ["age"], "layers": [_LAYER | {"weights": [["x"]]}]}]}, _LAYERS + "0/weights/0/0"),
        (
            {"family": "gaussian-mean", "target": None, "features": ["age", {"interaction": ["age", "hours"]}]},
            _AT + "1",
        ),
    ],
)
def test_a_fault_of_the_model_has_a_pointer(
    api: httpx.Client, owner: rows.Key, dataset_id: str, changes: dict[str, Any], pointer: str
) -> None:
    body = job_body(dataset_id)
    body["model"] |= changes
    response = api.post("/v1/quotes", json=body, headers=owner.headers)
    refusal = problem(response, 422, "invalid_request")
    assert [fault["pointer"] for fault in refusal["errors"]] == [pointer]
    assert "secret_name" not in response.text


WITHOUT_LIKELIHOOD = {"gaussian", "latent-dirichlet-allocation", "sigmoid-belief-network"}


def test_the_catalogue_states_the_requirements_of_each_model(client: httpx.Client, analyst: rows.Key) -> None:
    listed = client.get("/v1/methods", headers=analyst.headers).json()["models"]
    families = {model["family"]: model for model in listed}
    assert set(families) == {model["family"] for model in MODELS} | {"logistic-regression"} | WITHOUT_LIKELIHOOD
    assert families["poisson-regression"]["target_types"] == ["integer"]
    assert families["poisson-regression"]["least_target"] == 0.0
    assert families["gaussian-mean"]["target_types"] == []
    assert families["gaussian-mean"]["intercept"] is False
    assert families["linear-regression"]["noise_scale"] == "optional"
    assert families["probit-regression"]["noise_scale"] == "none"
    assert families["student-t-regression"]["degrees_of_freedom"] == "optional"
    assert families["linear-regression"]["degrees_of_freedom"] == "none"
    assert families["negative-binomial-regression"]["dispersion"] == "optional"
    assert families["negative-binomial-regression"]["least_target"] == 0.0
    assert families["poisson-regression"]["dispersion"] == "none"


def test_the_catalogue_states_which_method_takes_which_model(client: httpx.Client, analyst: rows.Key) -> None:
    listed = client.get("/v1/methods", headers=analyst.headers).json()
    offers = {model["family"]: set(model["offers"]) for model in listed["models"]}
    for method in listed["methods"]:
        expected = {family for family, offered in offers.items() if set(method["needs"]) <= offered}
        assert set(method["models"]) == expected
        assert expected
    taken = {method["id"]: (method["leaves"], set(method["models"])) for method in listed["methods"]}
    assert taken["vips"] == ("belief", {"logistic-regression", "linear-regression"} | WITHOUT_LIKELIHOOD)
    assert taken["dp-psvi"] == ("points", offers.keys() - WITHOUT_LIKELIHOOD)
