"""Coefficients in the table's units, against predictions of the model in the design's coordinates."""

import json
from typing import Any

import numpy as np
import pytest

from app.datasets.facts import make_declared_facts
from app.datasets.models import Dataset
from app.inference.core.designs import Feature, Interaction
from app.inference.core.plan import ModelSpec, PriorSpec
from app.inference.core.problems import make_problem
from app.releases import coefficients
from app.releases.coefficients import compute_coefficients, read_points
from app.releases.models import Release
from app.vault.store import ObjectStore
from tests.factories import rows
from tests.factories.worker import House

FACTS = {"columns": rows.COLUMNS, "slots": 1_000, "privacy_unit": {"kind": "row"}, "sensitivity": "private"}
TABLE = {
    "age": np.array([17.0, 40.0, 90.0]),
    "hours": np.array([1.0, 35.5, 99.0]),
    "sex": np.array([0, 1, 1], dtype=np.uint16),
    "income_gt_50k": np.array([0.0, 1.0, 1.0]),
    "_present": np.ones(3, np.uint8),
}


def _problem(family: str, target: str | None, *features: Feature) -> Any:
    spec = ModelSpec(family, features, target, PriorSpec(1.0, {}, None))
    return make_problem(spec, make_declared_facts(Dataset(**FACTS)))


@pytest.mark.parametrize("family", ["logistic-regression", "poisson-regression"])
def test_predictors_are_the_same_in_both_units(family: str) -> None:
    target = {"logistic-regression": "income_gt_50k", "poisson-regression": "age"}[family]
    problem = _problem(family, target, "hours", "sex")
    theta = np.array([0.7, -1.2, 0.4])
    matrix, shift = coefficients._make_transform(problem)
    own = matrix @ theta + shift
    x, _, _ = problem.design.encode(TABLE)
    predicted = own[0] * TABLE["hours"] + own[1] * (TABLE["sex"] == 1) + own[2]
    assert predicted == pytest.approx(x @ theta, rel=1e-5)


@pytest.mark.parametrize("family", ["logistic-regression", "linear-regression"])
def test_coefficients_of_terms_stay_in_design_coordinates(family: str) -> None:
    """Predictors are the same in both forms."""
    target = {"logistic-regression": "income_gt_50k", "linear-regression": "hours"}[family]
    problem = _problem(family, target, "age", Interaction(("age", "sex")), "sex")
    theta = np.array([0.7, -1.2, 0.4, 0.3, 0.1])[: problem.model.dimension]
    matrix, shift = coefficients._make_transform(problem)
    own = matrix @ theta + shift
    x, _, _ = problem.design.encode(TABLE)
    expected = x @ theta[:4]
    if family == "linear-regression":
        expected = problem.design.target_scale.decode(np.asarray(expected, dtype=np.float64))
    assert own[0] * TABLE["age"] + x[:, 1:3] @ own[1:3] + own[3] == pytest.approx(expected, rel=1e-5)


def test_a_scaled_target_is_predicted_in_its_units() -> None:
    problem = _problem("linear-regression", "hours", "age", "sex")
    theta = np.array([0.3, -0.1, 0.2, -1.5])
    matrix, shift = coefficients._make_transform(problem)
    own = matrix @ theta + shift
    x, _, _ = problem.design.encode(TABLE)
    decoded = problem.design.target_scale.decode(np.asarray(x @ theta[:3], dtype=np.float64))
    assert own[0] * TABLE["age"] + own[1] * (TABLE["sex"] == 1) + own[2] == pytest.approx(decoded, rel=1e-5)
    assert np.exp(own[3]) == pytest.approx(49.0 * np.exp(theta[3]))


def test_a_mean_is_in_the_units_of_its_column() -> None:
    problem = _problem("gaussian-mean", None, "age", "hours")
    matrix, shift = coefficients._make_transform(problem)
    assert matrix @ np.array([-1.0, 1.0]) + shift == pytest.approx([17.0, 99.0])


def test_classes_are_transformed_one_by_one() -> None:
    problem = _problem("multinomial-logistic", "sex", "age", "hours")
    matrix, shift = coefficients._make_transform(problem)
    assert matrix.shape == (3, 3)
    assert shift == pytest.approx(np.zeros(3))
    assert matrix[2, 0] == pytest.approx(-53.5 / 36.5)


@pytest.fixture
def published(house: House, owner: rows.Key) -> tuple[Release, Dataset, ObjectStore]:
    job = house.job(
        house.ready_dataset(owner), owner, privacy={"noise_multiplier": 9.0, "sampling_rate": 1.0, "iterations": 5}
    )
    house.run(job)
    with house.database.read() as session:
        release = session.get_one(Release, house.read(job).release_id)
        return release, session.get_one(Dataset, release.dataset_id), house.services.areas.released


def test_intervals_follow_from_points_and_noise(published: tuple[Release, Dataset, ObjectStore]) -> None:
    """A second derivation: the posterior by a numerical Hessian at the mode, and the noise by its stated blocks."""
    release, dataset, store = published
    points = read_points(store, release)
    found = compute_coefficients(store, release, dataset, points)
    assert points is not None
    assert found is not None
    table = np.array(points.rows)
    u, y, weight = table[:, :4], table[:, 4], table[:, 5]

    def gradient(theta: Any) -> Any:
        return u.T @ (weight * (y - 1 / (1 + np.exp(-u @ theta)))) - theta

    matrix, shift = coefficients._make_transform(
        _problem("logistic-regression", "income_gt_50k", "age", "hours", "sex")
    )
    mode = np.linalg.solve(matrix, np.array([each.centre for each in found]) - shift)
    assert gradient(mode) == pytest.approx(np.zeros(4), abs=1e-4)
    steps = np.eye(4) * 1e-5
    hessian = np.array([(gradient(mode + step) - gradient(mode - step)) / 2e-5 for step in steps])
    covariance = matrix @ np.linalg.inv(-hessian) @ matrix.T
    with store.open(release.representations["belief.json"]["object"]) as file:
        blocks = {block["name"]: block["arrays"] for block in json.loads(file.read())["blocks"]}
    noise = matrix @ np.array(blocks["noise"]["covariance"]) @ matrix.T
    for place, each in enumerate(found):
        assert each.noise_aware is not None
        assert each.plain.high - each.plain.low == pytest.approx(
            2 * 1.959964 * covariance[place, place] ** 0.5, rel=1e-4
        )
        total = covariance[place, place] + noise[place, place]
        assert each.noise_aware.high - each.noise_aware.low == pytest.approx(2 * 1.959964 * total**0.5, rel=1e-4)


def test_odds_ratios_are_exponentials_without_the_intercept(published: tuple[Release, Dataset, ObjectStore]) -> None:
    release, dataset, store = published
    found = compute_coefficients(store, release, dataset, read_points(store, release))
    assert found is not None
    ratios = {each.name: each.ratio for each in found}
    assert ratios["intercept"] is None
    assert ratios["age"] is not None
    assert ratios["age"][0] == pytest.approx(np.exp(found[0].centre))


def test_large_releases_are_left_to_the_client(
    published: tuple[Release, Dataset, ObjectStore], monkeypatch: pytest.MonkeyPatch
) -> None:
    release, dataset, store = published
    monkeypatch.setattr(coefficients, "MOST_PARAMETERS", 3)
    assert compute_coefficients(store, release, dataset, read_points(store, release)) is None
    monkeypatch.setattr(coefficients, "MOST_BYTES", 10)
    assert read_points(store, release) is None
