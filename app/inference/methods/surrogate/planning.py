"""Plans: from a request and declared facts to the queries, their noise and the certificate's text.

A plan is made once, priced and stored. A run makes it again from the stored parameters and compares the two.
"""

import math
from dataclasses import replace
from itertools import chain

import numpy as np

from app.errors import InvalidRequest
from app.inference.core.designs import Polynomial, Spline
from app.inference.core.facts import DeclaredFacts
from app.inference.core.knobs import Parameter
from app.inference.core.plan import MechanismPlan, PlannedQuery, PlanRequest
from app.inference.core.problems import Problem
from app.inference.methods.private import NOISE, make_sampled_event, warn_of_size
from app.inference.methods.surrogate.moments import read_declared
from app.inference.methods.surrogate.openings import make_lengths_query, make_moments_query, make_tails_query
from app.inference.methods.surrogate.schedule import Ask, Regime, Schedule
from app.inference.methods.surrogate.state import Opening, Setup
from app.inference.methods.surrogate.tuning import TUNING
from app.inference.models.location_scale import LocationScale
from app.inference.models.residuals import UnboundedTargets, require_residuals
from app.inference.private_zone.mechanisms import GRID_BITS, MAX_SCALE
from app.inference.private_zone.queries import (
    BoundedScoreSum,
    CutScoreSum,
    ExcessSum,
    InformationSum,
    MeanSum,
    MomentSum,
    ResidualHistogram,
    TailSum,
)
from app.inference.private_zone.queries.residuals import EDGES

ROUNDS = Parameter(
    "rounds",
    "integer",
    2,
    40,
    "Number of rounds; each asks a score, and an information matrix unless noise would hide it. The default depends on "
    "noise and model.",
)
RATE = Parameter(
    "sampling_rate",
    "number",
    0,
    1,
    "Poisson sampling rate: the probability that a slot takes part in a query.",
    default=1.0,
    exclusive_minimum=True,
)
VERSION = Parameter(
    "version",
    "integer",
    2,
    2,
    "Version of the method. A stored plan names it, and only its version carries it out.",
    default=2,
)
_ROUNDING = 1e-9
"""Relative difference of noise multipliers that counts as rounding."""
FAR_TARGETS = 100.0
"""Deviations from a prediction of zero that declared bounds may allow without a warning."""
_WIDE_FAMILIES = ("negative-binomial-regression", "student-t-regression")
"""Families that describe far targets: of counts, and of other numbers."""
UNRESOLVED = 1.2
"""Resolution of the schedule above which the posterior's shape is uncertain."""
_FEW_ROUNDS = 5
"""Rounds below which a search may end before it reaches the mode: with 4, it did in 3 of 18 ordinary tables."""


def make_setup(problem: Problem, schedule: Schedule, facts: DeclaredFacts, size: int, *, within_bounds: bool) -> Setup:
    """Make the constants of a run of a plan with ``size`` points."""
    model, design, prior = problem
    return Setup(
        model=model,
        design=design,
        prior=prior,
        declared=read_declared(design),
        schedule=schedule,
        size=size,
        rows_per_unit=facts.rows_per_unit,
        within_bounds=within_bounds,
        labels=design.target is not None and design.target.type == "binary",
    )


def make_schedule(request: PlanRequest, facts: DeclaredFacts, problem: Problem, rounds: int | None) -> Schedule:
    """Make the schedule of a request.

    The request states a mechanism, or the caller has calibrated a noise multiplier to a target epsilon.

    Raises:
        InvalidRequest: for a mechanism that no plan has, or a target that cannot be reached.
    """
    mechanism = request.mechanism
    if mechanism is None:
        if request.noise_multiplier is None or not 0 < request.noise_multiplier <= MAX_SCALE:
            raise InvalidRequest.at("/privacy", "State a target epsilon that can be reached, or a mechanism.")
        rate = float(request.parameters.get(RATE.name, 1.0))
        return _build_schedule(request.noise_multiplier, rate, facts, problem, rounds)
    NOISE.check(mechanism.noise_multiplier, "/privacy/noise_multiplier")
    RATE.check(mechanism.sampling_rate, "/privacy/sampling_rate")
    schedule = _build_schedule(mechanism.noise_multiplier, mechanism.sampling_rate, facts, problem, rounds)
    return _fill(schedule, mechanism.iterations)


def read_schedule(plan: MechanismPlan, facts: DeclaredFacts, problem: Problem) -> Schedule:
    """Read the schedule of ``plan``.

    The plan may leave out an opening query to have a requested number of queries.
    """
    assert plan.mechanism is not None
    kinds = {query.kind for query in plan.queries}
    rounds, noise = int(plan.parameters[ROUNDS.name]), plan.mechanism.noise_multiplier
    schedule = _build_schedule(noise, plan.mechanism.sampling_rate, facts, problem, rounds)
    return replace(schedule, centres=MeanSum.kind in kinds, tails=TailSum.kind in kinds)


def _build_schedule(sigma: float, rate: float, facts: DeclaredFacts, problem: Problem, rounds: int | None) -> Schedule:
    return Schedule(
        sigma,
        rate,
        facts.slots,
        problem.model.dimension,
        intercept=problem.design.intercept,
        centres=facts.rows_per_unit == 1 and problem.design.width > int(problem.design.intercept),
        tails=True,
        unbounded=isinstance(problem.model, UnboundedTargets) and problem.design.intercept,
        redescending=isinstance(problem.model, UnboundedTargets) and problem.model.redescending,
        squares=isinstance(problem.model, UnboundedTargets) and problem.model.squares,
        asked_rounds=rounds,
    )


def _fill(schedule: Schedule, iterations: int) -> Schedule:
    """Set the number of rounds so that the schedule has ``iterations`` queries.

    If the remaining queries do not fill whole rounds, the last optional opening query is left out.

    Raises:
        InvalidRequest: no number of rounds has as many queries.
    """
    least, most = int(ROUNDS.minimum), int(ROUNDS.maximum)
    shorter = replace(schedule, tails=False) if schedule.tails_share else replace(schedule, centres=False)
    for each in (schedule, shorter):
        for rounds in range(least, most + 1):
            filled = replace(each, asked_rounds=rounds)
            if filled.openings + len(filled.program) == iterations:
                return filled
    asked = f"Use {schedule.openings} queries, or one fewer, and {2 if schedule.asks_matrices else 1} for each of "
    asked += f"{least} to {most} rounds" + (", and 1 to 3 for residuals." if schedule.unbounded else ".")
    raise InvalidRequest.at("/privacy/iterations", asked)


def plan_queries(setup: Setup) -> tuple[PlannedQuery, ...]:
    """List the queries in the order in which they are asked."""
    schedule, size, shares = setup.schedule, setup.model.dimension, setup.schedule.score_shares
    opening = Opening(setup)

    def query(kind: str, length: int, share: float) -> PlannedQuery:
        return PlannedQuery(kind, length, make_sampled_event(schedule.multiplier(share), schedule.rate))

    histogram = make_lengths_query(opening)
    lengths = query(histogram.kind, histogram.length, schedule.lengths_share)
    planned = [lengths]
    if schedule.means_share:
        means = make_moments_query(opening, MeanSum)
        planned.append(query(means.kind, means.length, schedule.means_share))
    moments = make_moments_query(opening, MomentSum)
    planned += [lengths, query(moments.kind, moments.length, TUNING.moments_share)]
    if schedule.tails_share:
        tails = make_tails_query(setup, np.zeros(setup.features), np.ones(setup.features))
        planned.append(query(tails.kind, tails.length, schedule.tails_share))
    lengths_of = {
        Ask.MATRIX: (InformationSum.kind, size**2, schedule.information_share),
        Ask.RESIDUALS: (ResidualHistogram.kind, 2 * len(EDGES), schedule.residuals_share),
        Ask.EXCESS: (ExcessSum.kind, 3 if schedule.squares else 2, TUNING.excess_share),
    }
    scores = CutScoreSum.kind if schedule.cuts_residuals else BoundedScoreSum.kind
    for ask, turn in schedule.program:
        kind = lengths_of.get(ask, (scores, size, float(shares[turn])))
        planned.append(query(*kind))
    return tuple(planned)


def describe_clipping(setup: Setup) -> str:
    """Describe for the certificate how contributions are bounded.

    Stored plans are compared with these words (:func:`check_plan`), so a plan with other words is refused.
    """
    schedule, bounds = setup.schedule, "weights of scores do not depend on targets"
    sums = "Means and moments" if schedule.means_share else "Moments"
    follow = "C and the weight of a row in the count follow" if setup.rows_per_unit == 1 else "C follows"
    tails = " Tails: C follows from the number of columns." if schedule.tails_share else ""
    matrices = "Information matrices and scores" if schedule.asks_matrices else "Scores"
    residuals = (
        f" Residuals are cut at {TUNING.first_cut:g} deviations, then where a noised histogram of them (C = 1) has "
        "the least expected loss. For sums of the excess beyond a cut, C is that of the histogram's furthest residual."
    )
    if schedule.redescending:
        bounds = "slopes of scores are clipped symmetrically"
        residuals = " A noised histogram of residuals, of C = 1, is a check."
        if schedule.cuts_residuals:
            residuals += " Scores are of a wider scale while noised answers leave the linear predictor in doubt."
    return (
        "Version 2. Each unit's contribution to a query is clipped to norm C (L2 norm; for matrices, Frobenius norm), "
        f"divided by C/2^{GRID_BITS} and rounded to integers whose squares sum to at most 2^{2 * GRID_BITS}. Lengths: "
        f"C = 1. {sums}: {follow} from a noised root mean square length.{tails} {matrices}: metric and C minimise the "
        f"expected loss, computed from earlier noised answers. The {bounds}.{residuals if schedule.unbounded else ''}"
    )


class OtherVersion(Exception):
    """A plan of another version: its bounds or queries differ, so it is not carried out."""


def check_version(plan: MechanismPlan) -> None:
    """Check that ``plan`` is of this version; plans of version 1 name none.

    Raises:
        OtherVersion: it is not.
    """
    # The version is raised if waiting jobs would ask other queries, or state other bounds, than their plans.
    if plan.parameters.get(VERSION.name) != VERSION.default:
        raise OtherVersion


def check_plan(plan: MechanismPlan, setup: Setup) -> None:
    """Check that ``setup`` makes the same plan as ``plan``, with noise up to rounding.

    Raises:
        OtherVersion: it does not.
    """
    check_version(plan)
    made = plan_queries(setup)
    same = len(plan.queries) == len(made) and all(map(_are_alike, plan.queries, made))
    if plan.clipping != describe_clipping(setup) or not same:
        raise OtherVersion


def _are_alike(one: PlannedQuery, other: PlannedQuery) -> bool:
    shapes = [(each.kind, each.length, each.count, each.event.sampling_rate) for each in (one, other)]
    noises = (each.event.noise_multiplier for each in (one, other))
    return shapes[0] == shapes[1] and math.isclose(*noises, rel_tol=_ROUNDING)


def list_warnings(request: PlanRequest, facts: DeclaredFacts, problem: Problem, schedule: Schedule) -> tuple[str, ...]:
    """Warn of plans whose result will be inaccurate, before budget is spent."""
    warnings = list(warn_of_size(request.size, problem.model))
    if schedule.regime is Regime.COLUMNS:
        warnings.append(
            "with this many parameters and this much noise, correlations between features are not measured; fewer "
            "features, more slots or a larger epsilon help"
        )
    elif schedule.regime is not Regime.DIRECT and schedule.resolution > UNRESOLVED:
        warnings.append(
            "with this many parameters and this much noise, the posterior's shape is only roughly right, and too wide "
            "in some directions; fewer features, more slots or a larger epsilon help"
        )
    if schedule.rounds < _FEW_ROUNDS:
        warnings.append(
            f"with fewer than {_FEW_ROUNDS} rounds, the search often ends before it reaches the posterior's centre; "
            "use more rounds, or leave their number out"
        )
    if facts.rows_per_unit > 1 and request.model.target is not None:
        warnings.append(
            "the method expects independent targets in the rows of a unit; if they are similar, even a calibrated "
            "release may be far from the posterior of the rows: upload one row for each unit, if possible"
        )
    members = (getattr(each, "members", (each,)) for each in request.model.features)
    curved = any(isinstance(each, Polynomial | Spline) for each in chain.from_iterable(members))
    if curved and isinstance(problem.model, LocationScale):
        warnings.append(
            "few rows may decide the slopes of polynomials and splines in a linear or student-t model: releases are "
            "often centre-only, and even calibrated ones may be far off; declare bounds that rows fill evenly"
        )
    narrow = schedule.unbounded and request.model.family not in _WIDE_FAMILIES
    if narrow and require_residuals(problem.model).largest_residual(problem.prior.mean) > FAR_TARGETS:
        counts, numbers = _WIDE_FAMILIES
        warnings.append(
            "the declared bounds allow targets that this model cannot explain; if such targets occur, "
            f"{counts} for counts or {numbers} for other numbers describes them better"
        )
    return tuple(warnings)
