"""Programs, containers and tables for other tools have the client's numbers."""

import csv
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest
import scipy.special
from corevault import InvalidArgument, MissingDependency, Pseudocoreset, Release, UnexpectedReply, UnreadableSource
from corevault.belief import Belief, Block
from corevault.exports.density import NUMPY, make_log_density
from corevault.exports.inference_data import NO_LOG_LIKELIHOOD
from corevault.model import ModelRequest
from corevault.weighted_model import WeightedModel, weigh_model
from numpy.typing import NDArray

from tests.client.models import MODELS, make_core
from tests.client.stan_evaluator import evaluate

Array = NDArray[np.float64]
EACH = pytest.mark.parametrize("model", MODELS, ids=lambda model: type(model).__name__)


def _weigh(core: Pseudocoreset) -> WeightedModel:
    y = np.zeros(len(core.u)) if core.y is None else core.y
    return weigh_model(core.release, core.u, y, core.weight)


def _expected(weighted: WeightedModel, theta: Array) -> float:
    return weighted.likelihood().expand(theta).value + weighted.prior.log_density(theta)


def _differences(core: Pseudocoreset) -> tuple[WeightedModel, Array, Array]:
    """Parameters ``(5, D)`` near the mode, and their log densities without the constant."""
    weighted, fit = _weigh(core), core.laplace(noise=False)
    thetas = fit.sample(5, np.random.default_rng(2))
    values = np.array([_expected(weighted, theta) for theta in thetas])
    return weighted, thetas, values - values[0]


@EACH
def test_the_shared_density_equals_the_likelihood(model: ModelRequest) -> None:
    weighted, thetas, expected = _differences(make_core(model))
    density = make_log_density(weighted, NUMPY)
    values = np.array([density(theta) for theta in thetas])
    np.testing.assert_allclose(values - values[0], expected, atol=1e-8)


@EACH
def test_the_stan_program_has_the_density_of_the_client(model: ModelRequest) -> None:
    core = make_core(model, noisy=True)
    program, (_, thetas, expected) = core.stan(), _differences(core)
    assert program.names == core.posterior().names
    fit = core.laplace(noise=False)
    zs = np.linalg.solve(np.array(program.data["root"]), (thetas - fit.mean).T).T
    values = [evaluate(program.code, program.data, z) for z in zs]
    np.testing.assert_allclose(np.array([theta for _, theta in values]), thetas, atol=1e-9)
    np.testing.assert_allclose([value - values[0][0] for value, _ in values], expected, atol=1e-8)


@EACH
def test_the_noise_root_is_that_of_the_stated_noise(model: ModelRequest) -> None:
    core = make_core(model, noisy=True)
    root = np.array(core.stan().data["noise_root"])
    assert core.belief is not None
    assert core.belief.noise is not None
    np.testing.assert_allclose(root @ root.T, core.belief.noise.covariance, atol=1e-12)
    assert root.shape[1] == len(root) - 1  # the rank
    assert core.stan(noise=False).data["R"] == 0


def test_weights_and_priors_change_the_program() -> None:
    core = make_core(MODELS[0])
    heavier = Pseudocoreset(core.release, core.u, core.y, 2 * core.weight)
    z = np.ones(len(core.laplace().names))
    centred = core.stan().data | {"weight": heavier.stan().data["weight"]}
    assert evaluate(core.stan().code, centred, z)[0] != evaluate(core.stan().code, core.stan().data, z)[0]
    assert core.stan().data["prior_scale"] == [2.0] * 4


def test_a_family_without_a_program_is_refused() -> None:
    core = make_core(MODELS[0])
    stranger = Release.from_json(dict(core.release.raw) | {"model": {"family": "neural-linear", "target": "ill"}})
    for export in ("stan", "numpyro_model", "pymc_model"):
        with pytest.raises(InvalidArgument, match="neural-linear"):
            getattr(Pseudocoreset(stranger, core.u, core.y, core.weight), export)()


def test_noise_of_other_parameters_is_refused() -> None:
    core = make_core(MODELS[0])
    arrays = {"names": np.array(["a"]), "mean": np.zeros(1), "covariance": np.eye(1)}
    strange = Pseudocoreset(core.release, core.u, core.y, core.weight, Belief((Block("noise", "normal", arrays),)))
    with pytest.raises(UnexpectedReply, match="other parameters"):
        strange.stan()


class Recorder(ModuleType):
    """A fake engine. It gives the parameters and records the density and the results."""

    def __init__(self, name: str, given: dict[str, Array]) -> None:
        super().__init__(name)
        self.given, self.densities, self.results = given, [], {}

    densities: list[float]
    results: dict[str, Array]

    def record(self, name: str, value: Any, **_: Any) -> Any:
        self.results[name] = np.asarray(value)
        return value

    def add(self, _: str, value: Any) -> None:
        self.densities.append(float(value))


@contextmanager
def _modules(monkeypatch: pytest.MonkeyPatch, **modules: Any) -> Iterator[None]:
    with monkeypatch.context() as patch:
        for name, module in modules.items():
            patch.setitem(sys.modules, name.replace("__", "."), module)
        yield


def _numpyro(monkeypatch: pytest.MonkeyPatch, core: Pseudocoreset, given: dict[str, Array]) -> Recorder:
    class Normal:
        def __init__(self, location: float, scale: float) -> None:
            assert (location, scale) == (0.0, 1.0)

        def expand(self, shape: list[int]) -> "Normal":
            assert tuple(shape) == given["noise"].shape
            return self

        def to_event(self, dimensions: int) -> "Normal":
            return self

    engine: Any = Recorder("numpyro", given)
    constraints = SimpleNamespace(real_vector=None)
    engine.distributions = SimpleNamespace(Normal=Normal, constraints=constraints, ImproperUniform=lambda *_: None)
    engine.sample = lambda name, _: given[name]
    engine.deterministic, engine.factor = engine.record, engine.add
    jax = SimpleNamespace(numpy=np, scipy=scipy, Array=type("Array", (), {}))  # SciPy asks for arrays of a loaded JAX
    parts: dict[str, Any] = {"jax": jax, "jax__numpy": np, "jax__scipy__special": scipy.special}
    with _modules(monkeypatch, numpyro=engine, **parts):
        core.numpyro_model()()
    assert isinstance(engine, Recorder)
    return engine


def _pymc(monkeypatch: pytest.MonkeyPatch, core: Pseudocoreset, given: dict[str, Array]) -> Recorder:
    engine: Any = Recorder("pymc", given)
    pt: Any = ModuleType("pytensor.tensor")
    for name in ("exp", "log1p", "dot", "concatenate", "zeros_like"):
        setattr(pt, name, getattr(np, name))
    pt.as_tensor_variable, pt.logsumexp = np.asarray, scipy.special.logsumexp
    pt.softplus = NUMPY.softplus

    class Model:
        def __init__(self, coords: dict[str, list[str]]) -> None:
            assert coords == {"parameter": list(core.laplace().names)}

        def __enter__(self) -> "Model":
            return self

        def __exit__(self, *_: object) -> None:
            pass

    class Normal:
        def __new__(cls, name: str, shape: int) -> Any:
            assert (shape,) == given[name].shape
            return given[name]

        @staticmethod
        def dist(*_: float) -> None:
            return None

    engine.Model, engine.Normal, engine.Flat = Model, Normal, lambda name, shape: given[name]
    engine.Deterministic, engine.Potential = engine.record, engine.add
    engine.logcdf = lambda _, x: scipy.special.log_ndtr(x)
    with _modules(monkeypatch, pymc=engine, pytensor__tensor=pt):
        core.pymc_model()
    assert isinstance(engine, Recorder)
    return engine


@EACH
@pytest.mark.parametrize("build", [_numpyro, _pymc])
def test_engines_get_the_density_of_the_client(
    build: Any, model: ModelRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    core = make_core(model, noisy=True)
    _, thetas, expected = _differences(core)
    data = core.stan().data
    root, noise_root = np.array(data["root"]), np.array(data["noise_root"])
    found = []
    for theta in thetas:
        z = np.linalg.solve(root, theta - core.laplace(noise=False).mean)
        error = np.linspace(-1, 1, noise_root.shape[1])
        engine = build(monkeypatch, core, {"z": z, "noise": error})
        np.testing.assert_allclose(engine.results["coefficients"], theta + noise_root @ error, atol=1e-9)
        found.append(engine.densities[0])
    np.testing.assert_allclose(np.array(found) - found[0], expected, atol=1e-8)


@pytest.mark.parametrize(
    ("export", "extra", "options"),
    [
        ("numpyro_model", "numpyro", {}),
        ("pymc_model", "pymc", {}),
        ("to_inference_data", "arviz", {"samples": np.zeros((1, 2, 4))}),
        ("to_polars", "polars", {}),
    ],
)
def test_a_missing_engine_names_its_extra(
    export: str, extra: str, options: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, extra, None)
    with pytest.raises(MissingDependency, match=rf"pip install 'corevault\[{extra}\]'"):
        getattr(make_core(MODELS[0]), export)(**options)


class Group:
    """A group of a container, with attributes."""

    def __init__(self, arrays: dict[str, Array]) -> None:
        self.arrays = arrays
        self.attrs: dict[str, str] = {}


@pytest.mark.parametrize("version", ["0.23.4", "1.3.0"])
def test_the_container_fits_both_versions_of_arviz(version: str, monkeypatch: pytest.MonkeyPatch) -> None:
    made: dict[str, Any] = {}

    def old(*, coords: Any, dims: Any, **groups: Any) -> dict[str, Group]:
        made.update(coords=coords, dims=dims)
        return {name: Group(arrays) for name, arrays in groups.items()}

    def new(groups: Any, *, coords: Any, dims: Any) -> dict[str, Group]:
        return old(coords=coords, dims=dims, **groups)

    arviz: Any = ModuleType("arviz")
    arviz.__version__, arviz.from_dict = version, old if version.startswith("0") else new
    core = make_core(MODELS[0])
    with _modules(monkeypatch, arviz=arviz):
        container = core.to_inference_data(draws=50, chains=3, rng=np.random.default_rng(1))
        with pytest.raises(InvalidArgument, match="must have the shape"):
            core.to_inference_data(np.zeros((4, 4)))
        with pytest.raises(InvalidArgument, match="Pass rng"):
            core.to_inference_data()
    assert set(container) == {"posterior", "observed_data", "constant_data"}
    assert container["posterior"].arrays["coefficients"].shape == (3, 50, 4)
    assert container["posterior"].attrs["log_likelihood"] == NO_LOG_LIKELIHOOD
    assert made["coords"]["parameter"] == list(core.laplace().names)
    np.testing.assert_array_equal(container["constant_data"].arrays["weight"], core.weight)


def test_tables_of_every_library_have_the_points(tmp_path: Path) -> None:
    core = make_core(MODELS[0])
    assert core.y is not None
    columns = core.to_numpy()
    assert list(columns) == [*core.columns, "y", "weight"]
    np.testing.assert_array_equal(columns["y"], core.y)
    pd.testing.assert_frame_equal(core.to_arrow().to_pandas(), core.to_pandas())
    core.to_csv(tmp_path / "points.csv")
    with (tmp_path / "points.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    np.testing.assert_array_equal([float(row["weight"]) for row in rows], core.weight)
    with pytest.raises(UnreadableSource, match="cannot be written"):
        core.to_csv(tmp_path / "no" / "points.csv")
