"""Predictions of every model family, against averages over draws of the posterior."""

import dataclasses
from typing import Any

import numpy as np
import pandas as pd
import pytest
from corevault import (
    Gaussian,
    GaussianMean,
    InvalidArgument,
    LinearRegression,
    LogisticRegression,
    MultinomialLogistic,
    NegativeBinomialRegression,
    PoissonRegression,
    ProbitRegression,
    StudentTRegression,
    WrongType,
    logistic_laplace,
    posterior,
)
from corevault.model import ModelRequest
from scipy.special import expit, ndtr, softmax

from tests.client.models import make_points, make_release

ON = ["age", "colour"]
LOGISTIC = LogisticRegression(features=ON, target="ill")
PROBIT = ProbitRegression(features=ON, target="ill")
POISSON = PoissonRegression(features=ON, target="visits", prior_scale=0.3)
NEGATIVE_BINOMIAL = NegativeBinomialRegression(features=ON, target="visits", prior_scale=0.3)
LINEAR = LinearRegression(features=ON, target="hours", noise_scale=20.0)
UNKNOWN_NOISE = LinearRegression(features=ON, target="hours")
STUDENT = StudentTRegression(features=ON, target="hours", noise_scale=20.0)
CLASSES = MultinomialLogistic(features=["age", "hours"], target="colour")
MEAN = GaussianMean(features=["age", "hours"])


def _belief(model: ModelRequest, share: float = 1.0) -> tuple[Gaussian, np.ndarray[Any, Any]]:
    """The posterior on a ``share`` of the weights; the smaller, the wider."""
    x, y, weight = make_points(model)
    return posterior(make_release(model), x, y, share * weight), x


def _draws(belief: Gaussian, x: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Linear predictors ``(draws, n)`` of coefficients coefficients."""
    coefficients = belief.sample(200_000, np.random.default_rng(1))
    predictors: np.ndarray[Any, Any] = coefficients[:, : x.shape[1]] @ x[:5].T
    return predictors


@pytest.mark.parametrize(
    ("model", "link", "tolerance"), [(LOGISTIC, expit, 0.01), (PROBIT, ndtr, 0.004)], ids=["logistic", "probit"]
)
def test_a_binary_family_predicts_the_probability_of_a_one(model: ModelRequest, link: Any, tolerance: float) -> None:
    belief, x = _belief(model, share=0.1)
    averaged = link(_draws(belief, x)).mean(axis=0)
    np.testing.assert_allclose(belief.predict_probability(x[:5]), averaged, atol=tolerance)
    np.testing.assert_array_equal(belief.predict_mean(x[:5]), belief.predict_probability(x[:5]))


@pytest.mark.parametrize("model", [POISSON, NEGATIVE_BINOMIAL], ids=["Poisson", "negative binomial"])
def test_a_model_of_counts_predicts_the_expected_count(model: ModelRequest) -> None:
    belief, x = _belief(model, share=0.001)
    averaged = np.exp(_draws(belief, x)).mean(axis=0)
    np.testing.assert_allclose(belief.predict_mean(x[:5]), averaged, rtol=0.02)


@pytest.mark.parametrize("model", [LINEAR, UNKNOWN_NOISE, STUDENT], ids=["known noise", "unknown noise", "Student-t"])
def test_linear_predicts_the_target_in_its_units(model: ModelRequest) -> None:
    belief, x = _belief(model)
    averaged = 50.0 + 50.0 * _draws(belief, x).mean(axis=0)  # hours are declared in [0, 100]
    np.testing.assert_allclose(belief.predict_mean(x[:5]), averaged, atol=0.2)


def test_multinomial_predicts_each_class() -> None:
    belief, x = _belief(CLASSES, share=0.1)
    coefficients = belief.sample(100_000, np.random.default_rng(2))
    logits = np.stack(
        [np.zeros((len(coefficients), 5)), coefficients[:, :3] @ x[:5].T, coefficients[:, 3:] @ x[:5].T], axis=2
    )
    probabilities = belief.predict_probability(x[:5])
    np.testing.assert_allclose(probabilities, softmax(logits, axis=2).mean(axis=0), atol=0.03)
    np.testing.assert_allclose(probabilities.sum(axis=1), 1.0)


def test_categories_with_names_of_columns_hide_no_column() -> None:
    belief, x = _belief(CLASSES)
    assert belief.outcome is not None
    outcome = dataclasses.replace(belief.outcome, classes=("class", "low", "probability=low"))
    frame = dataclasses.replace(belief, outcome=outcome).predict(x[:5])
    assert len(frame.columns) == 4
    assert set(frame["class"]) <= set(outcome.classes)


@pytest.mark.parametrize(
    ("model", "call", "sentence"),
    [
        (POISSON, "predict_probability", "no probabilities; use predict_mean, the expected count"),
        (NEGATIVE_BINOMIAL, "predict_probability", "no probabilities; use predict_mean, the expected count"),
        (LINEAR, "predict_probability", "no probabilities; use predict_mean, the expected target"),
        (STUDENT, "predict_probability", "no probabilities; use predict_mean, the expected target"),
        (MEAN, "predict_probability", "no probabilities: it has no target"),
        (MEAN, "predict_mean", "no mean to predict: it has no target"),
        (CLASSES, "predict_mean", "no mean to predict; use predict_probability"),
    ],
)
def test_an_undefined_prediction_of_a_family_is_refused(model: ModelRequest, call: str, sentence: str) -> None:
    belief, x = _belief(model)
    with pytest.raises(InvalidArgument, match=sentence):
        getattr(belief, call)(x)


def test_a_gaussian_without_a_model_predicts_no_mean() -> None:
    belief = Gaussian(("a",), np.zeros(1), np.eye(1))
    with pytest.raises(InvalidArgument, match="has no model, so it predicts no mean"):
        belief.predict_mean(np.ones((1, 1)))
    own = logistic_laplace(np.ones((2, 1)), np.array([0.0, 1.0]))
    np.testing.assert_allclose(own.predict_mean(np.ones((1, 1))), [0.5])


@pytest.mark.parametrize(
    "x", ["text", None, np.ones(4), np.ones((2, 3)), np.array([[50.0, 1, 0, 0]]), [[object()] * 4]]
)
def test_an_x_that_is_not_a_design_matrix_is_refused(x: Any) -> None:
    belief, _ = _belief(LOGISTIC)
    with pytest.raises(InvalidArgument, match=r"such as core\.design_matrix\(rows\)"):
        belief.predict_probability(x)


def test_a_table_with_other_columns_is_refused() -> None:
    belief, x = _belief(LOGISTIC)
    raw = pd.DataFrame(x, columns=["age", "colour", "sex", "one"])
    with pytest.raises(WrongType, match="table with other columns"):
        belief.predict_probability(raw)
    named = pd.DataFrame(x, columns=list(belief.names))
    np.testing.assert_allclose(belief.predict_probability(named), belief.predict_probability(x), rtol=1e-12)


def test_null_rows_have_nan_predictions() -> None:
    belief, x = _belief(LOGISTIC)
    x[1] = np.nan
    probabilities = belief.predict_probability(x)
    assert np.isnan(probabilities).tolist() == [place == 1 for place in range(len(x))]
