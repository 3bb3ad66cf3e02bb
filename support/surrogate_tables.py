"""Tables of many kinds, also degenerate ones, and runs of the surrogate on them."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from randomgen import ChaCha
from scipy.special import expit

from app.inference.core.facts import Column, DeclaredFacts
from app.inference.core.model import Array64
from app.inference.core.plan import MechanismPlan, ModelSpec, PlanRequest, PriorSpec
from app.inference.core.problems import Problem, make_problem
from app.inference.core.query import Integers, Query
from app.inference.core.release import Pseudocoreset
from app.inference.post.laplace import Laplace, fit_laplace
from app.inference.private_zone.mechanisms import GRID, NoiseSource
from app.inference.private_zone.oracle import ClippedGaussianOracle
from app.inference.registry import find_method
from app.inference.runner import run_points
from support.divergence import compute_divergence
from support.table import Table

METHOD: Final = "dp-psvi-surrogate"
CLASSES: Final = ("a", "b", "c")
FAMILIES: Final = (
    "logistic-regression",
    "probit-regression",
    "linear-regression",
    "student-t-regression",
    "poisson-regression",
    "negative-binomial-regression",
    "multinomial-logistic",
    "gaussian-mean",
)
DESIGNS: Final[dict[str, Callable[[np.random.Generator, int, int], Array64]]] = {
    "uniform": lambda rng, n, k: rng.uniform(-1, 1, (n, k)),
    "normal": lambda rng, n, k: 0.3 * rng.standard_normal((n, k)),
    "correlated": lambda rng, n, k: 0.3 * rng.standard_normal((n, 1)) + 0.1 * rng.standard_normal((n, k)),
    "constant": lambda rng, n, k: np.tile(rng.uniform(-1, 1, k), (n, 1)),
    "at the bound": lambda rng, n, k: np.ones((n, k)),
    "duplicated": lambda rng, n, k: np.repeat(rng.uniform(-1, 1, (n, 1)), k, axis=1),
    "heavy tails": lambda rng, n, k: 0.02 * rng.standard_cauchy((n, k)),
    "rare": lambda rng, n, k: np.where(rng.random((n, k)) < 0.02, 1.0, -1.0),
    "narrow": lambda rng, n, k: 0.7 + 1e-3 * rng.standard_normal((n, k)),
    "zero": lambda rng, n, k: np.zeros((n, k)),
}
SIGNALS: Final = ("drawn", "separable", "all alike", "noise")
CURVED: Final = "curved"
"""A further signal: the model lacks the squares of columns."""

_CURVATURE: Final = 1.0


@dataclass(frozen=True, slots=True)
class Case:
    """``rows`` rows in ``slots`` slots, ``features`` columns of a kind, targets of a kind."""

    family: str = "logistic-regression"
    design: str = "uniform"
    signal: str = "drawn"
    features: int = 9
    rows: int = 2000
    slots: int = 2200
    seed: int = 0
    prior: PriorSpec = PriorSpec()  # noqa: RUF009  (frozen)
    noise_scale: float | None = None
    degrees: float | None = None
    """Stated degrees of freedom; targets have 4."""

    @property
    def spec(self) -> ModelSpec:
        """All columns, and the family's target."""
        target = {"multinomial-logistic": "class", "gaussian-mean": None}.get(self.family, "y")
        has_scale = self.family in {"linear-regression", "student-t-regression", "gaussian-mean"}
        scale = self.noise_scale if has_scale else None
        names = tuple(f"x{j}" for j in range(self.features))
        return ModelSpec(self.family, names, target, self.prior, scale, degrees_of_freedom=self.degrees)

    @property
    def facts(self) -> DeclaredFacts:
        """Bounds of -1 and 1, and a target of the family's type."""
        features = tuple(Column(f"x{j}", "real", -1, 1) for j in range(self.features))
        target = {
            "multinomial-logistic": Column("class", "categorical", categories=CLASSES),
            "linear-regression": Column("y", "real", -10, 10),
            "student-t-regression": Column("y", "real", -10, 10),
            "poisson-regression": Column("y", "integer", 0, 10_000),
            "negative-binomial-regression": Column("y", "integer", 0, 10_000),
        }.get(self.family, Column("y", "binary"))
        return DeclaredFacts((*features, target), self.slots, {"kind": "row"}, "private", 1e-6)

    @property
    def problem(self) -> Problem:
        """Model, prior and design of the case."""
        return make_problem(self.spec, self.facts)

    def plan(self, sigma: float, size: int = 12, **parameters: Any) -> MechanismPlan:
        """Make the plan of a request with this ``sigma``."""
        return find_method(METHOD).plan(PlanRequest(METHOD, size, self.spec, parameters, None, sigma), self.facts)

    def table(self) -> Table:
        """Make the table, with null rows after its rows."""
        rng = np.random.default_rng(self.seed)
        x = np.clip(DESIGNS[self.design](rng, self.slots, self.features), -1, 1)
        columns: dict[str, NDArray[Any]] = {f"x{j}": x[:, j].copy() for j in range(self.features)}
        y = self._targets(rng, x)
        name = self.spec.target or "y"
        columns[name] = y.astype(np.uint16) if name == "class" else y
        columns["_present"] = (np.arange(self.slots) < self.rows).astype(np.uint8)
        for values in columns.values():
            values[self.rows :] = 0
        return Table(columns)

    def _targets(self, rng: np.random.Generator, x: Array64) -> Array64:
        a = x @ rng.normal(0, 1.5, self.features) + rng.normal()
        if self.signal == CURVED:
            a += _CURVATURE * np.square(x).sum(axis=1)
        if self.signal == "all alike":
            return np.ones(len(a))
        if self.signal == "noise":
            a = np.zeros(len(a))
        if self.family in {"logistic-regression", "probit-regression"}:
            return (a > 0 if self.signal == "separable" else rng.random(len(a)) < expit(a)).astype(float)
        if self.family in {"linear-regression", "student-t-regression"}:
            noise = rng.standard_normal(len(a)) if self.family == "linear-regression" else rng.standard_t(4, len(a))
            return np.clip(a + (self.signal == "drawn") * noise, -10, 10)
        if self.family in {"poisson-regression", "negative-binomial-regression"}:
            means = np.exp(np.minimum(a, 9))
            if self.family == "negative-binomial-regression" and self.signal == "drawn":
                means *= rng.exponential(size=len(a))
            return np.minimum(rng.poisson(means), 10_000).astype(float)
        return np.clip(np.floor(a + 1.5 + rng.random(len(a))), 0, 2)

    def exact(self) -> Laplace:
        """Compute the posterior of the full table."""
        problem = self.problem
        x, y, present = problem.design.encode(self.table().gather(np.arange(self.slots)))
        return fit_posterior(problem, x.astype(float), y.astype(float), present.astype(float))


def compute_tail_sums(t: Array64) -> Array64:
    """Compute the sums of the query of tails independently, ``(3, k)``.

    ``t`` are standardised columns, ``(n, k)``.
    """
    near, far = np.clip(t / 2.5, -1, 1), np.clip(t / 5, -1, 1)
    return np.array([np.sum(near**2, axis=0), np.sum(far**2, axis=0), np.sum(near / 2, axis=0)])


class Drawn:
    """Seeded floating-point noise of the planned size, for tests only."""

    def __init__(self, seed: int) -> None:
        self._rng = np.random.default_rng(seed)

    def perturb(self, sums: Integers, scale: float | Array64) -> Integers:
        return np.asarray(sums + np.rint(scale * self._rng.standard_normal(len(sums))).astype(np.int64))


class Script:
    """An oracle without rows, whose answers come from a function of their length."""

    def __init__(self, values: Callable[[int], Array64]) -> None:
        self._values = values

    def ask(self, query: Query) -> Array64:
        length = max(np.size(query.scales(1.0)), 1)
        noised: Any = self._values(length if length > 1 else query.length) * GRID
        return query.answer(noised)


def fit_posterior(problem: Problem, u: Array64, y: Array64 | None, weight: Array64) -> Laplace:
    rows = np.asarray(problem.model.fold(u, np.zeros(len(u)) if y is None else y))
    return fit_laplace(problem.model, rows, weight, problem.prior, np.zeros(problem.model.dimension))


def build(case: Case, plan: MechanismPlan, noise: NoiseSource, seed: int = 0) -> Pseudocoreset:
    """Run ``plan`` with the real oracle."""
    sampling = np.random.Generator(ChaCha(key=seed))
    oracle = ClippedGaussianOracle(case.problem.model, plan, case.facts, case.table(), noise=noise, sampling=sampling)
    return run_points(plan, case.facts, oracle, np.random.default_rng(seed), lambda _: None)


def compute_losses(case: Case, points: Pseudocoreset) -> tuple[float, float]:
    """Compute the divergences of the points' posterior and of the prior, in nats."""
    problem, exact = case.problem, case.exact()
    y = problem.design.encode_targets(points.y) if points.y is not None else None
    fitted = fit_posterior(problem, points.u, y, points.weight)
    prior = fit_posterior(problem, points.u, y, np.zeros(len(points.weight)))
    return compute_divergence(fitted, exact), compute_divergence(prior, exact)
