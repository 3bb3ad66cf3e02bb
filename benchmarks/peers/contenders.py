"""The contenders: Corevault's methods, this project's own peers, and peers from other projects."""

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Final, Protocol

import numpy as np

from app.inference.post.laplace import Laplace
from benchmarks.measures import fit_posterior, read_stated
from benchmarks.outcomes import Engine, release_points
from benchmarks.peers import gradient_descent, newton, objective_perturbation, posterior_sample
from benchmarks.peers.environments import install, read_versions, run_worker
from benchmarks.peers.problem import Belief, Settings
from benchmarks.peers.synthetic import encode_table, fit_synthetic
from benchmarks.peers.tables import PeerTable
from benchmarks.peers.tuning import DEVELOPMENT_SEEDS, Release, list_settings
from benchmarks.runs import POSTERIOR_METHODS

COREVAULT: Final = "dp-psvi-surrogate"
SEEDS: Final = 5
_SMALLER: Final = ("insurance", "heavy tails")
_PATIENCE_SECONDS: Final = 60.0
_WORKERS: Final = "benchmarks.peers.workers"


class Make(Protocol):
    """Makes one release."""

    def __call__(self, table: PeerTable, epsilon: float, settings: Settings, seed: int) -> Belief:
        """Release a belief about the table's coefficients."""


@dataclass(frozen=True, slots=True)
class Contender:
    """A way to buy a posterior.

    ``text`` describes it, with its neighbours and the conversion of epsilon. ``grid`` holds the settings to choose
    from with ``development`` seeds. ``requirements`` name the packages of its environment, and ``run`` the worker's
    module with its arguments; both are empty for methods of this repository. ``factor`` multiplies epsilon for a peer
    whose neighbours differ more. A release may take ``limit_seconds``. After ``patience_seconds``, a cell gets no
    further release. ``tables`` names the tables to run on, by default all.
    """

    name: str
    text: str
    make: Make | None = None
    grid: Mapping[str, Sequence[float]] = field(default_factory=dict)
    development: Sequence[int] = DEVELOPMENT_SEEDS
    seeds: int = SEEDS
    requirements: tuple[str, ...] = ()
    run: tuple[str, ...] = ()
    factor: float = 1.0
    limit_seconds: float = 180.0
    patience_seconds: float = math.inf
    tables: tuple[str, ...] = ()

    @property
    def candidates(self) -> list[dict[str, float]]:
        """All settings of the grid."""
        return list_settings(self.grid)

    def open(self, folder: Path) -> AbstractContextManager[tuple[Make, Mapping[str, str]]]:
        """Prepare releases; gives how to make one, and the versions of the environment's packages.

        Raises:
            PeerFailed: the environment could not be made.
        """
        return nullcontext((self.make, {})) if self.make else _open_worker(self, folder)


@contextmanager
def _open_worker(contender: Contender, folder: Path) -> Iterator[tuple[Make, Mapping[str, str]]]:
    module, *arguments = contender.run
    python = install(folder, contender.requirements[0].split("==", maxsplit=1)[0], contender.requirements)
    with run_worker(python, f"{_WORKERS}.{module}", arguments) as worker:

        def make(table: PeerTable, epsilon: float, settings: Settings, seed: int) -> Belief:
            problem = table.problem
            coded = encode_table(table, int(settings["bins"])) if "bins" in settings else None
            arrays = {"x": problem.x, "y": problem.y, "norm": problem.norm, "precision": problem.precision}
            if coded is not None:
                arrays = {"codes": coded.codes, "sizes": coded.sizes}
            request = {"epsilon": contender.factor * epsilon, "delta": problem.delta, "seed": seed}
            found = worker.ask(arrays, {**request, "settings": dict(settings)}, contender.limit_seconds)
            if coded is not None:
                return fit_synthetic(table, coded, found["codes"])
            return Belief(found["mean"], found.get("precision"))

        yield make, read_versions(python)


def release_by_corevault(method: str, table: PeerTable, epsilon: float, settings: Settings, seed: int) -> Belief:
    """Release by a method of Corevault at its defaults."""
    release = release_points(table.case, Engine(method, settings), epsilon, seed)
    stated = release.posterior if method in POSTERIOR_METHODS else None
    return _state(fit_posterior(table.case, release) if stated is None else read_stated(stated))


def _state(found: Laplace) -> Belief:
    return Belief(found.mean, found.factor @ found.factor.T)


def release_by_own(release: Release, table: PeerTable, epsilon: float, settings: Settings, seed: int) -> Belief:
    """Release by a peer of this project."""
    return release(table.problem, epsilon, settings, np.random.default_rng(seed))


def _make_synthetic(
    name: str, text: str, run: tuple[str, ...], tables: tuple[str, ...], **settings: float
) -> Contender:
    grid = {"bins": (32.0,), **{key: (value,) for key, value in settings.items()}}
    return Contender(
        name,
        text,
        None,
        grid,
        seeds=3,
        requirements=("dpmm==0.1.9",),
        run=run,
        patience_seconds=_PATIENCE_SECONDS,
        tables=tables,
    )


CONTENDERS: Final = (
    Contender(
        COREVAULT,
        "Corevault's default method at its defaults; zero-out. The posterior is that of the released points.",
        partial(release_by_corevault, COREVAULT),
    ),
    Contender(
        "dp-vi",
        "Corevault's noisy variational inference at its defaults; zero-out. It releases a Gaussian.",
        partial(release_by_corevault, "dp-vi"),
    ),
    Contender(
        "noisy Newton",
        "Own code: bounded gradients and noised Hessians, budgets that double from step to step, optionally on rows "
        "whitened by noised second moments; zero-out. It releases its last Hessian as the precision.",
        partial(release_by_own, newton.release),
        newton.GRID,
    ),
    Contender(
        "DP-GD",
        "Own code: descent on all rows with noised gradients, optionally on whitened rows; zero-out. A point estimate.",
        partial(release_by_own, gradient_descent.release),
        gradient_descent.GRID,
    ),
    Contender(
        "Newton, fixed",
        "Noisy Newton with the same settings on every table, as for somebody who cannot look.",
        partial(release_by_own, newton.release),
        {"steps": (5.0,), "hessian": (0.1,), "whiten": (0.2,), "clip": (1.0,), "weigh": (1.0,)},
    ),
    Contender(
        "DP-GD, fixed",
        "DP-GD with the same settings on every table. A point estimate.",
        partial(release_by_own, gradient_descent.release),
        {"steps": (40.0,), "rate": (6.0,), "whiten": (0.2,), "clip": (1.0,), "weigh": (1.0,)},
    ),
    Contender(
        "objective perturbation",
        "Own code: a Gaussian linear term in the objective, solved exactly; zero-out, whose Jacobian costs less than "
        "that of add-remove with a ridge. A point estimate.",
        partial(release_by_own, objective_perturbation.release),
        objective_perturbation.GRID,
    ),
    Contender(
        "one sample",
        "Own code: one draw of a tempered posterior with a clipped log-likelihood; zero-out. It is pure epsilon, to "
        "which delta would add less than three per cent. A point estimate.",
        partial(release_by_own, posterior_sample.release),
        posterior_sample.GRID,
    ),
    Contender(
        "diffprivlib",
        "`LogisticRegression`, objective perturbation with pure epsilon. Its neighbours differ by replacing a row, "
        "which is two zero-outs, so it gets 2ε. A point estimate.",
        grid={"looseness": (1.0, 0.3, 0.1, 0.03, 0.01, 0.001), "norm": (0.5, 1.0)},
        requirements=("diffprivlib==0.6.6", "scikit-learn==1.7.2"),
        run=("diffprivlib_logistic",),
        factor=2.0,
    ),
    _make_synthetic(
        "MST (dpmm)",
        "Synthetic rows by MST from `dpmm` with 1,000 steps of estimation, then their posterior; neighbours differ in "
        "the presence of a row. It runs on two tables, because it is slow.",
        ("dpmm_tables", "mst"),
        _SMALLER,
        iterations=1000.0,
    ),
    Contender(
        "d3p",
        "DP-VI in NumPyro: a mean-field Gaussian by noised stochastic gradients; neighbours differ in the presence of "
        "a row. Its settings come from a short trial.",
        grid={"steps": (2000.0,), "batch": (400.0,), "clip": (2.0,), "rate": (0.005,), "scale": (0.05,)},
        seeds=3,
        patience_seconds=_PATIENCE_SECONDS,
        requirements=("d3p==0.2.0", "jax==0.4.30", "jaxlib==0.4.30", "numpyro==0.15.3", "numpy==1.26.4"),
        run=("d3p_inference",),
    ),
    _make_synthetic(
        "AIM (dpmm)",
        "The same by AIM with a model of at most 1 MB; its authors use 80 MB and hours. It runs on one table.",
        ("dpmm_tables", "aim"),
        _SMALLER[:1],
        megabytes=1.0,
    ),
)
"""All contenders, in the order of the page."""
LEFT_OUT: Final = {
    "smartnoise-synth 1.0.8": "MST runs, but the sampler of mbi 1.1.0, which it requires, sorts rows within groups. "
    "Columns that are independent given a third one become dependent. Its KL on the insurance table was above "
    "30,000 nats at ε = 1.",
    "mbi 2.0.0": "the package has estimation only; MST and AIM are not part of it.",
    "d3p 0.2.0 with JAX 0.6.2": "pip resolves it, but it fails at import: `jax.core.Primitive was removed`. JAX 0.4.30 "
    "is used instead.",
    "private-pgm": "it is not in the package index.",
}
"""Peers that were tried and left out, with the reason."""


def format_settings(settings: Settings) -> str:
    """The settings as JSON, for a CSV file."""
    return json.dumps(dict(settings))
