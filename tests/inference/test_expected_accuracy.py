"""Estimates of accuracy for every family, and their dependence on noise and slots."""

import resource
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from app.inference import expected_accuracy
from app.inference.core.designs import Fourier, Interaction, Network, Polynomial, Spline
from app.inference.core.designs.network import Layer
from app.inference.core.facts import Column, DeclaredFacts
from app.inference.core.model import Array32, Array64
from app.inference.core.plan import MechanismPlan, ModelSpec, PlanRequest
from app.inference.methods.surrogate.method import OneBelief

COLUMNS = (
    Column("age", "integer", 17, 90),
    Column("hours", "real", 1, 99),
    Column("sex", "categorical", categories=("Female", "Male")),
    Column("flat", "real", 3, 3),
    Column("rich", "binary"),
    Column("visits", "integer", 0, 20),
    Column("wage", "real", -5, 400),
)
FEATURES = ("age", "hours", "sex")
LAYER = Layer(((2.0,), (-1.0,)), (0.0, 0.5), "tanh")


def facts(slots: int = 50_000, most_rows: int = 1) -> DeclaredFacts:
    unit = {"kind": "row"} if most_rows == 1 else {"kind": "column", "column": "person", "max_rows": most_rows}
    return DeclaredFacts(COLUMNS, slots, unit, "private", 1e-6)


pytestmark = pytest.mark.slow


def plan(declared: DeclaredFacts, noise: float = 10.0, **model: Any) -> MechanismPlan:
    spec = replace(ModelSpec("logistic-regression", FEATURES, "rich"), **model)
    return OneBelief().plan(PlanRequest(OneBelief.id, 20, spec, {}, None, noise), declared)


def estimate(declared: DeclaredFacts, noise: float = 10.0, **model: Any) -> Array64:
    found = expected_accuracy.estimate(plan(declared, noise, **model), declared)
    return np.array(list(found.noise.values()))


@pytest.mark.long
@pytest.mark.parametrize(
    "model",
    [
        {},
        {"family": "probit-regression"},
        {"family": "linear-regression", "target": "wage"},
        {"family": "linear-regression", "target": "wage", "noise_scale": 20.0},
        {"family": "student-t-regression", "target": "wage"},
        {"family": "poisson-regression", "target": "visits"},
        {"family": "negative-binomial-regression", "target": "visits"},
        {"family": "multinomial-logistic", "target": "sex", "features": ("age", "hours")},
        {"family": "gaussian-mean", "features": ("age", "hours"), "target": None, "noise_scale": 0.2},
        {"features": ("flat", "age")},
        {"features": (Spline("age", 5), Interaction(("hours", "sex")), Fourier(("age", "hours"), 4, 1.0, 0))},
        {
            "features": ("sex", Polynomial("age", 3), Network(("hours",), (LAYER,))),
            "family": "poisson-regression",
            "target": "visits",
        },
    ],
    ids=str,
)
def test_every_family_has_a_finite_estimate(model: dict[str, Any]) -> None:
    declared = facts()
    found = expected_accuracy.estimate(plan(declared, **model), declared)
    assert set(found.noise) == set(found.widening)
    assert all(0 <= each < 1e6 for each in found.noise.values())
    assert all(each >= 1 for each in found.widening.values())


@pytest.mark.long
def test_more_noise_and_fewer_slots_widen_intervals() -> None:
    near, noisier, fewer = average(facts()), average(facts(), noise=40.0), average(facts(slots=5_000))
    assert noisier > 2 * near
    assert fewer > 1.5 * near


def average(declared: DeclaredFacts, noise: float = 10.0) -> float:
    """Average the logarithm over twelve estimates: one estimate varies by a quarter."""
    return float(np.exp(np.mean([np.log(estimate(declared, noise)) for _ in range(12)])))


def test_without_much_noise_estimates_are_near_the_closed_form() -> None:
    """A score has the noise C in posterior deviations. C^2 n / D is between 1.6 and 40."""
    slots, noise, parameters = 200_000, 3.0, 4
    declared = facts(slots)
    one = noise * np.sqrt(parameters / slots)
    median = float(np.median(estimate(declared, noise)))
    assert np.sqrt(1.6) * one < median < np.sqrt(40) * one / np.sqrt(0.5)


@pytest.mark.parametrize("most_rows", [9, 1_000_000])
@pytest.mark.long
def test_people_with_several_rows_are_simulated_in_bounded_memory(most_rows: int) -> None:
    declared = facts(most_rows=most_rows)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    assert np.all(estimate(declared) > 0)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 400_000, "kibibytes"


def test_only_the_default_method_and_small_models_are_estimated() -> None:
    declared = facts()
    made = plan(declared)
    assert expected_accuracy.is_estimated(made, declared)
    assert not expected_accuracy.is_estimated(replace(made, method="dp-vi"), declared)


@pytest.mark.long
def test_simulated_rows_lie_on_the_curves_of_their_terms(monkeypatch: pytest.MonkeyPatch) -> None:
    """W3: columns are simulated, and terms are computed from them as from stored rows."""
    seen: list[Array32] = []

    class Seen(expected_accuracy.SimulatedTable):
        def __init__(self, *arguments: Any) -> None:
            super().__init__(*arguments)
            seen.append(self._rows)

    monkeypatch.setattr(expected_accuracy, "SimulatedTable", Seen)
    declared = facts()
    features = ("age", Interaction(("age", "hours")), "hours", Polynomial("wage", 2))
    expected_accuracy.estimate(plan(declared, features=features), declared)
    rows = seen[0] * np.sign(seen[0][:, -1:])
    age, product, hours, wage, square, _ = rows.T
    np.testing.assert_allclose(product, age * hours, atol=1e-6)
    np.testing.assert_allclose(square, 1.5 * wage**2 - 0.5, atol=1e-6)
    assert abs(age.std() - 1 / 3) < 0.05
