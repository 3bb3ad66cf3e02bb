"""Tables with a model and an exact posterior for comparison.

A raw matrix becomes declared columns with bounds ``[-b, b]``. One b for all columns is wide enough that no value is
clamped. The design divides by b, so a prior of scale b on its coefficients is the standard normal prior on the raw
coefficients. The KL is the same in both coordinates, so the service's code needs no change.
"""

from dataclasses import dataclass, replace

import numpy as np
from scipy.linalg import solve_triangular

from app.inference.core.facts import Column, DeclaredFacts
from app.inference.core.model import Array64
from app.inference.core.plan import ModelSpec, PriorSpec
from app.inference.core.problems import Problem, make_problem
from app.inference.core.row_source import RowSource
from app.inference.post.laplace import Laplace, fit_laplace
from benchmarks.designs import Rows
from benchmarks.sources import TARGET, ArrayRows

BOUND = 8.0
"""The bound of standard normal columns. One value in 10^15 is outside."""


@dataclass(frozen=True, eq=False)
class Case:
    """A private table with its declared ``facts`` and model.

    ``exact`` is its full posterior in design coordinates, None if it is not computed.
    """

    name: str
    facts: DeclaredFacts
    spec: ModelSpec
    source: RowSource
    held_out: Rows | None = None
    exact: Laplace | None = None

    @property
    def problem(self) -> Problem:
        """Model, design and prior."""
        return make_problem(self.spec, self.facts)

    @property
    def public(self) -> DeclaredFacts:
        """The same table, declared public."""
        return replace(self.facts, sensitivity="public", delta=None)


def make_logistic(name: str, rows: Rows, *, bound: float, held_out: Rows | None = None) -> Case:
    """Logistic regression under ``N(0, I)`` on raw coefficients and the intercept."""
    prior = PriorSpec(scale=bound, scales={"intercept": 1.0})
    spec = ModelSpec("logistic-regression", _names(rows), TARGET, prior)
    return _solve(name, rows, spec, bound=bound, target=Column(TARGET, "binary"), held_out=held_out)


def make_gaussian_mean(name: str, x: Array64, held_out: Array64) -> Case:
    """The mean of ``N(theta, I)`` under ``N(0, I)``. A raw coordinate is ``BOUND`` times the design's."""
    rows, unseen = Rows(x, np.zeros(len(x))), Rows(held_out, np.zeros(len(held_out)))
    spec = ModelSpec("gaussian-mean", _names(rows), None, PriorSpec(scale=1 / BOUND), noise_scale=1 / BOUND)
    return _solve(name, rows, spec, bound=BOUND, target=Column(TARGET, "binary"), held_out=unseen)


def make_linear_regression(name: str, rows: Rows, held_out: Rows) -> Case:
    """Linear regression with noise and prior from the targets.

    The noise variance is the variance of the targets, and the prior variance is their second moment. The prior mean is
    zero.
    """
    most = 2 * float(np.abs(rows.y).max())
    scale = float(np.sqrt(np.mean(rows.y**2))) / most
    prior = PriorSpec(scale=BOUND * scale, scales={"intercept": scale})
    spec = ModelSpec("linear-regression", _names(rows), TARGET, prior, noise_scale=float(rows.y.std()))
    target = Column(TARGET, "real", -most, most)
    return _solve(name, rows, spec, bound=BOUND, target=target, held_out=held_out)


def narrow(case: Case, bound: float) -> Case:
    """The logistic ``case`` with columns clamped to ``[-bound, bound]``.

    Its exact posterior remains that of the raw rows.
    """
    old_bound = case.facts.columns[0].upper
    assert old_bound is not None
    assert case.exact is not None
    columns = tuple(
        replace(column, lower=-bound, upper=bound) if column.name in case.spec.features else column
        for column in case.facts.columns
    )
    spec = replace(case.spec, prior=replace(case.spec.prior, scale=bound))
    stretch = np.full(len(case.exact.mean), bound / old_bound)
    stretch[-1] = 1
    exact = Laplace(case.exact.mean * stretch, case.exact.factor / stretch[:, None])
    return replace(case, facts=replace(case.facts, columns=columns), spec=spec, exact=exact)


def _names(rows: Rows) -> tuple[str, ...]:
    return tuple(f"x{column}" for column in range(rows.x.shape[1]))


def _solve(name: str, rows: Rows, spec: ModelSpec, *, bound: float, target: Column, held_out: Rows | None) -> Case:
    if float(np.abs(rows.x).max()) > bound:
        raise ValueError(f"{name}: the declared bounds would clamp values")
    columns = (*(Column(name, "real", -bound, bound) for name in spec.columns if name != target.name), target)
    slots = len(rows.y)
    facts = DeclaredFacts(columns, slots, {"kind": "row"}, "private", 1 / slots)
    case = Case(name, facts, spec, ArrayRows(rows.x, rows.y, slots), held_out)
    return replace(case, exact=compute_full_posterior(case))


def make_design_rows(case: Case, rows: Rows | None = None) -> tuple[Array64, Array64]:
    """Design rows ``(n, p)`` and targets ``(n,)`` of the table, or of ``rows``."""
    source = case.source if rows is None else ArrayRows(rows.x, rows.y, len(rows.y))
    x, y, _ = case.problem.design.encode(source.gather(np.arange(source.slots)))
    return x.astype(np.float64), y.astype(np.float64)


_MOST_DECREMENT = 1e-4
"""The largest squared Newton decrement at a mode; it is twice the distance in nats."""


class NoMode(ArithmeticError):
    """The search for the mode of the full posterior did not converge."""


def compute_full_posterior(case: Case) -> Laplace:
    """The Laplace approximation on the rows of the whole table, at the mode.

    Raises:
        NoMode: if the search did not converge.
    """
    model, design, prior = case.problem
    x, y, present = design.encode(case.source.gather(np.arange(case.source.slots)))
    rows, weights = model.fold(x.astype(np.float64), y), present.astype(np.float64)
    found = fit_laplace(model, rows, weights, prior, prior.mean)
    gradient = model.expand(rows, weights, found.mean).gradient + prior.gradient(found.mean)
    if not np.sum(np.square(solve_triangular(found.factor, gradient, lower=True))) < _MOST_DECREMENT:
        raise NoMode(case.name)
    return found
