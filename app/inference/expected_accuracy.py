"""The expected accuracy of a release, from public facts alone: its plan is carried out on simulated rows.

The rows follow the declaration: columns within their bounds, categories with equal shares, targets by the model. The
method designs its queries, asks them and estimates its error as in a real run. No private row is read (W3).

There are a few thousand simulated rows. Sums over them are multiplied by the number of slots for each.
"""

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np

from app.inference.core.facts import DeclaredFacts
from app.inference.core.linear_algebra import invert
from app.inference.core.model import Array32, Array64, Model
from app.inference.core.plan import MechanismPlan
from app.inference.core.problems import Problem, make_problem, name_parameters
from app.inference.core.query import Query
from app.inference.methods.robustness import BETA
from app.inference.methods.surrogate.method import OneBelief
from app.inference.methods.surrogate.release import assess
from app.inference.methods.surrogate.rounds import ask_score
from app.inference.methods.surrogate.state import Search
from app.inference.models.gaussian import GaussianMean
from app.inference.private_zone.rng import make_monte_carlo_generator

LARGEST: Final = 32
"""Largest number of parameters. An estimate then takes about a second of a core."""
_UNITS, _ROWS, _MOST_ROWS_PER_UNIT = 2048, 1 << 15, 64
"""Most simulated units, most simulated rows, and most rows of one unit."""
_SPREAD: Final = 1 / 3
"""Standard deviation of numeric columns, in half widths of their bounds."""
_LABEL_PREDICTOR, _COUNT_PREDICTOR, _SCALED_PREDICTOR = 1.5, 0.7, 0.3
"""Largest root mean square of linear predictors: of labels, of counts, and in half widths of a scaled target."""
_DIGITS: Final = 3
LEAST, MOST = 0.15, 9.0
"""Real noise over estimated noise: nine of ten parameters of calibrated releases are between these factors.

They were chosen on the first 17 tables of seed 71 of :mod:`benchmarks.tables`, and ``make accuracy`` measures them on
fresh ones. The tables are of every kind, with rare outcomes, outliers and other distributions than the model's.
"""

ASSUMES: Final = (
    "Every slot holds a row, and rows are simulated from the declaration. Numeric columns are normal around the middle "
    "of their bounds, with a standard deviation of a third of half the width. Categories have equal shares. Terms are "
    "computed from the columns. Targets follow the model, with linear predictors of a root mean square of at most "
    f"{_LABEL_PREDICTOR:g} for labels, {_COUNT_PREDICTOR:g} for counts and {_SCALED_PREDICTOR:g} half widths for other "
    "numbers. A person has as many rows as the root of the declared most, and at most "
    f"{_MOST_ROWS_PER_UNIT}. The simulation is random, so estimates vary. Rare categories or outcomes, narrow columns, "
    "outliers and empty slots make real intervals wider. The range holds for about nine of ten parameters of "
    f"calibrated releases of random test tables: they have {LEAST:g} to {MOST:g} times the estimated noise."
)
"""The assumptions of an estimate."""


@dataclass(frozen=True, slots=True)
class ExpectedAccuracy:
    """Estimates by name of the parameter.

    ``noise`` is the standard deviation of the noise in the posterior's mean, over that of the posterior. ``widening``
    is the factor by which 95 % intervals are wider than without noise: ``sqrt(1 + noise**2)``.
    """

    noise: Mapping[str, float]
    widening: Mapping[str, float]

    @property
    def widening_range(self) -> dict[str, tuple[float, float]]:
        """The lowest and the highest widening of each parameter that is to be expected."""
        return {name: (_widen(LEAST * noise), _widen(MOST * noise)) for name, noise in self.noise.items()}


def is_estimated(plan: MechanismPlan, facts: DeclaredFacts) -> bool:
    """Whether :func:`estimate` supports the method, its parameters and the size of the model."""
    if plan.method != OneBelief.id or BETA.name in plan.parameters:
        return False
    return make_problem(plan.model, facts).model.dimension <= LARGEST


def estimate(plan: MechanismPlan, facts: DeclaredFacts) -> ExpectedAccuracy:
    """Estimate the accuracy of a release of ``plan``.

    Raises:
        ArithmeticError, numpy.linalg.LinAlgError: the run on simulated rows gives no finite error.
        Exception: the plan cannot be carried out.
    """
    problem, rng = make_problem(plan.model, facts), make_monte_carlo_generator()
    table = _simulate_table(problem, plan, facts, rng)
    method = OneBelief()
    with np.errstate(all="ignore"):
        state = method.init(plan, facts, rng)
        for _ in range(plan.steps - 1):
            state = method.step(rng, state, table)
        assert isinstance(state, Search)
        _, turn = state.setup.schedule.program[-1]
        last = ask_score(rng, state, table, turn)  # the last step of the method would fit points, which takes long
        variance = np.maximum(assess(last).covariance.diagonal(), 0.0)
        noise = np.sqrt(variance / invert(last.information).diagonal())
    if not np.all(np.isfinite(noise)):
        raise ArithmeticError("the simulated run has no finite error")
    names = name_parameters(problem)
    return ExpectedAccuracy(_name(names, noise), _name(names, np.sqrt(1 + noise**2)))


def _widen(noise: float) -> float:
    return _round(float(np.hypot(1.0, noise)))


def _round(value: float) -> float:
    return float(f"{value:.{_DIGITS}g}")


def _name(names: tuple[str, ...], values: Array64) -> dict[str, float]:
    return {name: _round(value) for name, value in zip(names, values, strict=True)}


class SimulatedTable:
    """Answers the planned queries from simulated rows, with ordinary random noise: no row of it is private."""

    def __init__(  # noqa: PLR0917  (parts of a table)
        self,
        model: Model,
        plan: MechanismPlan,
        rows: Array32,
        each: int,
        slots: int,
        rng: np.random.Generator,
    ) -> None:
        """Take folded ``rows`` ``(units * each, row_width)``, unit by unit.

        Args:
            model: of the plan.
            plan: with the queries.
            rows: of all simulated units.
            each: the number of rows of a unit.
            slots: the number of units of the table whose sums are answered.
            rng: for the noise.
        """
        self._model, self._rows, self._each, self._rng = model, rows, each, rng
        self._events = deque(query.event for query in plan.queries for _ in range(query.count))
        self._ratio = slots * each / len(rows)

    def ask(self, query: Query) -> Array64:
        """Answer the next planned query, as :meth:`app.inference.core.query.Oracle.ask`."""
        event = self._events.popleft()
        exact = query.sum(self._model, self._rows, np.ones(len(self._rows), dtype=np.bool_), self._each)
        sums = exact * (self._ratio * event.sampling_rate)
        noise = query.scales(event.noise_multiplier) * self._rng.standard_normal(len(sums))
        return query.answer(np.rint(sums + noise).astype(np.int64))


def _simulate_table(
    problem: Problem, plan: MechanismPlan, facts: DeclaredFacts, rng: np.random.Generator
) -> SimulatedTable:
    """Simulate units of the declared table. Their null rows are left out, because they contribute nothing."""
    model, design, _ = problem
    each = min(round(facts.rows_per_unit**0.5), _MOST_ROWS_PER_UNIT)
    units = min(_UNITS, _ROWS // each)
    x = design.sample(rng, units * each, model.noise if isinstance(model, GaussianMean) else _SPREAD)
    y = model.sample_targets(rng, x, _choose_parameter(problem, rng, x))
    if design.target_bounds is not None:
        y = np.clip(y, *design.target_bounds)
    return SimulatedTable(model, plan, model.fold(x, y).astype(np.float32), each, facts.slots, rng)


def _choose_parameter(problem: Problem, rng: np.random.Generator, x: Array64) -> Array64:
    """Draw coefficients from the prior, and limit the linear predictors of ``x``.

    Intercepts and other parameters, such as a noise scale, are at the prior's centre.
    """
    model, design, prior = problem
    theta, size = prior.mean.copy(), model.predictors * design.width
    deviation = np.sqrt(invert(prior.precision(theta)).diagonal()[:size])
    blocks = (rng.standard_normal(size) * deviation).reshape(-1, design.width)
    if design.intercept:
        blocks[:, -1] = 0
    if design.target_scale is not None:
        most = _SCALED_PREDICTOR
    else:
        most = _LABEL_PREDICTOR if design.target is None or design.target.is_discrete else _COUNT_PREDICTOR
    spread = float(np.sqrt(np.mean((x @ blocks.T) ** 2)))
    theta[:size] += blocks.ravel() * min(1.0, most / max(spread, 1e-12))
    return theta
