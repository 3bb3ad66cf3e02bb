"""W14: no subnormal numbers, because processors take several times as long for them."""

from types import ModuleType

import numpy as np
import pytest

from app.inference.core.model import Model
from app.inference.models import logistic
from app.inference.models.gaussian import GaussianMean
from app.inference.models.linear import LinearRegression
from app.inference.models.logistic import LogisticRegression
from app.inference.models.poisson import PoissonRegression
from app.inference.models.poisson_law import compute_clipped_mean
from app.inference.private_zone.mechanisms import clip_to_grid
from app.inference.private_zone.queries import (
    CutScoreSum,
    ExcessSum,
    LengthHistogram,
    MomentSum,
    blocks,
    lengths,
    moments,
    tails,
)
from app.inference.private_zone.queries.tails import LEAST_DEVIATION, MOST_DEVIATION, TailSum


@pytest.mark.parametrize("paired", [False, True], ids=["single", "paired"])
def test_no_row_reaches_a_subnormal_number(monkeypatch: pytest.MonkeyPatch, paired: bool) -> None:
    """W14: every exponential of every activation is a normal number, and so are inverses and logarithms."""
    made: list[np.ndarray] = []

    class Recording:
        def __getattr__(self, name: str) -> object:
            return getattr(np, name)

        def record(self, values: np.ndarray) -> None:
            made.append(values.copy())

        def exp(self, values: np.ndarray, out: np.ndarray) -> None:
            self.record(np.exp(values, out=out))

        def reciprocal(self, values: np.ndarray, out: np.ndarray) -> None:
            self.record(np.reciprocal(values, out=out))

        def log(self, values: np.ndarray, out: np.ndarray) -> None:
            self.record(values)
            np.log(values, out=out)

    monkeypatch.setattr(logistic, "np", Recording())
    activations, one = np.linspace(-400, 400, 100_001, dtype=np.float32)[:, None], np.ones((1, 1), dtype=np.float32)
    if paired:
        out = np.empty((len(activations), 2), dtype=np.float32)
        LogisticRegression(1).paired_losses(activations, one[0], one, out)
    else:
        LogisticRegression(1).log_likelihood(activations, one)
    assert len(made) == (4 if paired else 2)
    assert all(np.all(np.isfinite(found)) and found.min() >= np.finfo(np.float32).tiny for found in made)


@pytest.mark.parametrize("cut", [0.3, 2.7, 40.0])
def test_no_rate_of_counts_reaches_a_subnormal_number(cut: float) -> None:
    """W14: the smallest rates in the row zone take the same steps as all others."""
    rates = np.exp(np.linspace(-20, 20, 10_001))
    with np.errstate(under="raise"):
        compute_clipped_mean(rates, np.full_like(rates, cut))


def _recorded(monkeypatch: pytest.MonkeyPatch, module: ModuleType, name: str) -> list[np.ndarray]:
    """Record the results of the module's function ``name`` from now on."""
    made, original = list[np.ndarray](), getattr(module, name)

    def recorded(values: np.ndarray) -> np.ndarray:
        made.append(original(values).copy())
        return np.asarray(original(values))

    monkeypatch.setattr(module, name, recorded)
    return made


def test_squares_of_small_coordinates_have_normal_squares(monkeypatch: pytest.MonkeyPatch) -> None:
    """W14: the coordinates of a design are multiples of about 2^-40, and moments are clipped by their fourth powers."""
    recorded = [_recorded(monkeypatch, module, "append_squares") for module in (moments, lengths)]
    rows = np.ones((41, 2), dtype=np.float32)
    rows[:, 0] = 2.0 ** -np.arange(41)
    present = np.ones(41, dtype=bool)
    MomentSum(1.0, 2, intercept=True, clip=3.0).sum(LogisticRegression(2), rows, present, 1)
    LengthHistogram(1.0, 2, intercept=True, largest=9.0, squares=True).sum(LogisticRegression(2), rows, present, 1)
    assert [len(made) for made in recorded] == [1, 1]
    with np.errstate(under="raise"):
        assert all(np.all(np.square(values[:41]) >= np.finfo(np.float32).tiny) for (values,) in recorded)


@pytest.mark.parametrize("centre", [2.0**-20, -(2.0**-20), 0.25, 1.0])
def test_centred_coordinates_have_normal_squares(centre: float) -> None:
    """W14: for every coordinate, in particular next to the centre; scales are at most four."""
    near = np.float32(centre)
    beside = [near, np.nextafter(near, np.float32(2)), np.nextafter(near, np.float32(-2)), 0.0, 2.0**-40, -(2.0**-40)]
    rows = np.ones((len(beside), 2), dtype=np.float32)
    rows[:, 0] = beside
    for model, intercept in ((LogisticRegression(2), True), (GaussianMean(1, 1.0), False)):
        query = MomentSum(4.0, model.width, intercept=intercept, clip=3.0, centre=np.array([centre]))
        left = query.coordinates(model, rows)
        assert np.any(left == 0)
        assert np.all(np.square(left[left != 0]) >= np.finfo(np.float32).tiny)


@pytest.mark.parametrize("deviation", [LEAST_DEVIATION, 0.3, MOST_DEVIATION])
def test_coordinates_of_tails_have_normal_squares(deviation: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """W14: next to the centre, where coordinates are as small as the grid leaves them, and far from it."""
    made = _recorded(monkeypatch, tails, "_winsorise")
    rows = np.ones((6, 2), dtype=np.float32)
    rows[:, 0] = [0.25, np.nextafter(np.float32(0.25), np.float32(1)), 0.0, 2.0**-40, -1.0, 1.0]
    query = TailSum(1.0, 2, intercept=True, centre=np.array([0.25]), deviation=np.array([deviation]), clip=1.5)
    query.sum(LogisticRegression(2), rows, np.ones(6, dtype=bool), 1)
    with np.errstate(under="raise"):
        squares = np.square(made[0][:6])
    assert np.all((squares >= np.finfo(np.float32).tiny) | (made[0][:6] == 0))
    assert np.any(made[0][:6] == 0)


RESIDUAL_MODELS: dict[str, Model] = {"linear": LinearRegression(2, 0.2), "poisson": PoissonRegression(2, 0.0, 60.0)}


@pytest.mark.parametrize("name", RESIDUAL_MODELS)
@pytest.mark.parametrize("cut", [1.0, 1.5, 90.0])
def test_what_a_cut_takes_has_normal_squares(name: str, cut: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """W14: also for residuals next to the cut, and for predictors next to the centre."""
    made, original = list[np.ndarray](), clip_to_grid

    def recorded(values: np.ndarray, present: np.ndarray, clip: float) -> np.ndarray:
        made.append(values.copy())
        return original(values, present, clip)

    monkeypatch.setattr(blocks, "clip_to_grid", recorded)
    model, theta = RESIDUAL_MODELS[name], np.array([0.5, 0.25])
    rows = np.ones((400, 3), dtype=np.float32)
    rows[:, 0] = np.tile([0.0, 2.0**-40, -(2.0**-40), 1.0], 100)
    scale = 0.2 if name == "linear" else np.sqrt(np.exp(0.25) + 0.5)
    at_cut = np.float32((0.25 if name == "linear" else np.exp(0.25)) + cut * scale)
    steps = np.repeat(np.arange(-50, 50), 4)
    rows[:, 2] = (at_cut.view(np.int32) + steps).astype(np.int32).view(np.float32)  # the numbers around the cut
    excess = ExcessSum(theta, cut, scale=2.0, centre=0.25, spread=0.5, squares=0.01, clip=100.0)
    for query in (excess, CutScoreSum(theta, np.eye(2), 100.0, cut)):
        query.sum(model, rows, np.ones(400, dtype=bool), 1)
    assert [len(values) for values in made] == [512, 512]
    assert np.sum(made[0][:400, 0] == 0) > 50
    assert np.sum(made[0][:400, 0] != 0) > 50
    for values in made:
        squares = np.square(values[:400])
        assert np.all((squares >= np.finfo(np.float32).tiny) | (values[:400] == 0))
