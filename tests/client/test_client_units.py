"""Coefficients in original units, ratios, and predictions for rows of the declared table."""

import sys
from typing import Any

import numpy as np
import pytest
from corevault import Gaussian, InvalidArgument, Pseudocoreset, Release, example
from corevault._show import Table
from corevault.examples import _MODELS
from corevault.likelihoods import REFERENCE_NOISE
from scipy.special import ndtri

REGRESSIONS = sorted(set(_MODELS) - {"gaussian-mean", "multinomial-logistic"})
ROWS: dict[str, list[Any]] = {"age": [25, 40, 78], "smoker": [0, 1, 1], "sex": ["male", "female", "male"]}
RAW = np.column_stack([ROWS["age"], ROWS["smoker"], [1, 0, 1], np.ones(3)]).astype(float)
"""The same rows as columns of the design without scaling."""


@pytest.mark.parametrize("family", REGRESSIONS)
def test_original_units_have_the_same_predictor(family: str) -> None:
    core = example(family)
    fit = core.posterior()
    original, outcome = fit.in_original_units(), fit.outcome
    assert outcome is not None
    x = core.design_matrix(ROWS)
    scaled = outcome.center + outcome.half * (x @ fit.mean[:4])
    np.testing.assert_allclose(RAW @ original.mean[:4], scaled, rtol=1e-12)
    spread = outcome.half**2 * np.einsum("np,pq,nq->n", x, fit.covariance[:4, :4], x)
    np.testing.assert_allclose(np.einsum("np,pq,nq->n", RAW, original.covariance[:4, :4], RAW), spread, rtol=1e-9)
    assert original.noise is not None
    np.testing.assert_allclose(original.covariance / original.noise, np.full_like(original.noise, 10.0))
    assert original.in_original_units() is original


def test_unknown_noise_gets_the_units_of_the_target() -> None:
    fit = example("linear-regression").posterior()
    noise = np.exp(fit.in_original_units().mean[-1])
    assert noise == pytest.approx(60.0 * REFERENCE_NOISE * np.exp(fit.mean[-1]))
    assert 8 < noise < 17  # the points have 12


def test_means_and_classes_have_original_units() -> None:
    mean = example("gaussian-mean").posterior()
    np.testing.assert_allclose(mean.in_original_units().mean, 50.0 + 30.0 * mean.mean)
    classes = example("multinomial-logistic")
    fit, x = classes.posterior(), classes.design_matrix(ROWS)
    original = fit.in_original_units()
    for block in (slice(0, 4), slice(4, 8)):
        np.testing.assert_allclose(RAW @ original.mean[block], x @ fit.mean[block], rtol=1e-12)


def test_the_summary_in_original_units_has_ratios() -> None:
    core = example()
    frame = core.summary(0.8)
    fit = core.posterior().in_original_units()
    assert list(frame.columns) == ["mean", "sd", "low", "high", "odds_ratio", "ratio_low", "ratio_high"]
    assert frame.loc["age", "low"] == pytest.approx(fit.mean[0] - ndtri(0.9) * fit.sd[0])
    assert frame.loc["age", "ratio_high"] == pytest.approx(np.exp(frame.loc["age", "high"]))
    assert "odds_ratio" not in core.posterior().summary().columns
    assert "rate_ratio" in example("poisson-regression").summary().columns
    assert list(example("probit-regression").summary().columns) == ["mean", "sd", "low", "high"]
    assert core.summary(noise=False).loc["age", "sd"] < core.summary().loc["age", "sd"]


def _summarise_a_wavelet() -> object:
    """The summary of a release whose column has an unknown kind."""
    core = example()
    design = [dict(column) for column in core.release.raw["design"]]
    design[1] = {"name": "age:sex", "source": None, "transform": {"kind": "wavelet"}}
    release = Release.from_json(dict(core.release.raw) | {"design": design})
    assert len(Pseudocoreset(release, core.u, core.y, core.weight).posterior().summary()) == 4
    return Pseudocoreset(release, core.u, core.y, core.weight).summary()


def test_ratios_follow_the_steps() -> None:
    fit = example("poisson-regression").posterior()
    table = fit.ratios({"age": -10.0})
    one = fit.in_original_units().mean[0]
    assert table.loc["age", "rate_ratio"] == pytest.approx(np.exp(-10.0 * one))
    assert table.loc["age", "low"] < table.loc["age", "rate_ratio"] < table.loc["age", "high"]
    for call, sentence in (
        (lambda: fit.ratios({"AGE": 1.0}), "no coefficient 'AGE'"),
        (lambda: fit.ratios({"age": "ten"}), "step of age must be a number"),  # type: ignore[dict-item]
        (lambda: example("probit-regression").posterior().ratios(), "no odds or rate ratios"),
        (lambda: Gaussian(("a",), np.zeros(1), np.eye(1)).in_original_units(), "no design"),
        (lambda: fit.intervals(95), "between 0 and 1"),
        (_summarise_a_wavelet, r"'age:sex' has no units of the table; see core\.posterior\(\)\.summary"),
        (lambda: fit.in_original_units().predict(RAW), r"predict with core\.posterior"),
    ):
        with pytest.raises(InvalidArgument, match=sentence):
            call()


@pytest.mark.parametrize("family", REGRESSIONS)
def test_predictions_have_intervals(family: str) -> None:
    core = example(family)
    fit, frame = core.posterior(), core.predict(ROWS, level=0.9)
    x = core.design_matrix(ROWS)
    name = "probability" if family.startswith(("logistic", "probit")) else "mean"
    np.testing.assert_allclose(frame[name], fit.predict_mean(x))
    assert (frame["low"] < frame[name]).all()
    assert (frame[name] < frame["high"]).all()
    draws = fit.sample(40_000, np.random.default_rng(3))[:, :4] @ x.T
    assert fit.outcome is not None
    inverse: dict[str, Any] = {"logistic": lambda eta: 1 / (1 + np.exp(-eta)), "poisson": np.exp, "negative": np.exp}
    expected = inverse.get(family.partition("-")[0])
    if expected is not None:
        np.testing.assert_allclose(frame["high"], np.quantile(expected(draws), 0.95, axis=0), rtol=0.02)


def test_classes_and_means_are_predicted() -> None:
    frame = example("multinomial-logistic").predict(ROWS)
    names = [f"probability={name}" for name in ("home", "ward", "clinic")]
    assert list(frame.columns) == ["class", *names]
    np.testing.assert_allclose(frame[names].sum(axis=1), 1.0)
    assert f"probability={frame['class'][0]}" == frame.drop(columns="class").iloc[0].idxmax()
    mean = example("gaussian-mean").posterior().predict()
    assert mean.loc["age", "low"] < mean.loc["age", "mean"] < mean.loc["age", "high"]


def test_without_pandas_a_plain_table_is_returned(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pandas", None)
    table = example().summary()
    assert isinstance(table, Table)
    assert table[0]["name"] == "age"
    assert str(table).splitlines()[0].startswith("name")
    assert len(str(table).splitlines()) == len(table) + 1 == 5
    assert "<th>odds_ratio</th>" in table._repr_html_()
    many = Table([{"a": None, "b": True}] * 99)
    assert str(many).splitlines()[-1] == "and 39 more rows"
