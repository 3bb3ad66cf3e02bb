"""Plans of a surrogate: from a request and declared facts to the queries, their noise and what is said of them."""

import math
from dataclasses import replace

import numpy as np

from app.errors import InvalidRequest
from app.inference.core.facts import DeclaredFacts
from app.inference.core.plan import MechanismPlan, PlannedQuery, PlanRequest
from app.inference.core.problems import Problem
from app.inference.methods.private import NOISE, make_sampled_event, warn_of_size
from app.inference.methods.surrogate.asking import columns, features, lengths, means, moments, tails
from app.inference.methods.surrogate.bearing import bound_of
from app.inference.methods.surrogate.contribution_bounds import information_bound, score_bound
from app.inference.methods.surrogate.first_bearing import conceivable
from app.inference.methods.surrogate.schedule import FEWEST_OPENINGS, UNRESOLVED, Schedule
from app.inference.methods.surrogate.setting import RATE, ROUNDS, schedule_at
from app.inference.methods.surrogate.state import Setup
from app.inference.methods.surrogate.winsorised import clip_of_tails
from app.inference.private_zone.mechanisms import GRID_BITS, MAX_SCALE
from app.inference.private_zone.queries import BoundedScoreSum, InformationSum

_METRICS = (
    "The metric of matrices is wider along known rare levels and where noise may hide one. The metric of scores is "
    "wider along rare values that the prior shrinks, and along columns whose measured information is far below that "
    "of the row model."
)
_STEEP_SLOPES = (
    "Where the probability of a label changes steeply, the part of a score along the parameter has a separate bound; "
    "the whole score is still bounded by C."
)
_ROUNDING = 1e-9
"""Of a noise multiplier, relative: another machine may round a share otherwise."""


def schedule_for(request: PlanRequest, facts: DeclaredFacts, problem: Problem) -> Schedule:
    """From a mechanism, whose iterations are queries, or from the noise multiplier of a target."""
    mechanism = request.mechanism
    if mechanism is None:
        if request.noise_multiplier is None or not 0 < request.noise_multiplier <= MAX_SCALE:
            raise InvalidRequest.at("/privacy", "state a target epsilon that can be reached, or a mechanism")
        sigma, rate = request.noise_multiplier, float(request.parameters.get(RATE.name, 1.0))
    else:
        NOISE.check(mechanism.noise_multiplier, "/privacy/noise_multiplier")
        RATE.check(mechanism.sampling_rate, "/privacy/sampling_rate")
        sigma, rate = mechanism.noise_multiplier, mechanism.sampling_rate
    found = schedule_at(sigma, rate, facts, problem, request.parameters.get(ROUNDS.name))
    return found if mechanism is None else _of_queries(mechanism.iterations, found)


def _of_queries(iterations: int, found: Schedule) -> Schedule:
    """With so many queries: where they would not make whole rounds, the last kind of opening is left out."""
    each, openings = 2 if found.informed else 1, found.openings
    if (iterations - found.openings) % each:
        found = replace(found, tails=False) if found.tails_share else replace(found, means=False)
    rounds, rest = divmod(iterations - found.openings, each)
    if rest or not ROUNDS.minimum <= rounds <= ROUNDS.maximum:
        least, most = int(ROUNDS.minimum), int(ROUNDS.maximum)
        few = f"{openings - 1} or {openings}" if openings > FEWEST_OPENINGS else str(openings)
        asked = f"must be {few} queries, and {each} for each of {least} to {most} rounds"
        raise InvalidRequest.at("/privacy/iterations", asked)
    return replace(found, asked_rounds=rounds)


def queries(setup: Setup) -> tuple[PlannedQuery, ...]:
    """In the order in which they are asked."""
    schedule, size = setup.schedule, setup.model.dimension

    def query(kind: str, length: int, share: float) -> PlannedQuery:
        return PlannedQuery(kind, length, make_sampled_event(schedule.multiplier(share), schedule.rate))

    by_columns = columns(setup, 1.0, np.zeros(size), 1.0)
    histogram, sums = lengths(setup, 1.0), moments(setup, 1.0, 1.0)
    first = [query(histogram.kind, histogram.length, schedule.lengths_share)]
    if schedule.means_share:
        averages = means(setup, 1.0, 1.0)
        first.append(query(averages.kind, averages.length, schedule.means_share))
    planned = [*first, first[0], query(sums.kind, sums.length, schedule.moments_share)]
    if schedule.tails_share:
        none = np.ones(features(setup))
        further = tails(setup, 0 * none, none)
        planned.append(query(further.kind, further.length, schedule.tails_share))
    for share in schedule.score_shares:
        if schedule.informed:
            kind, length = (by_columns.kind, by_columns.length) if setup.columnwise else (InformationSum.kind, size**2)
            planned.append(query(kind, length, schedule.information_share))
        planned.append(query(BoundedScoreSum.kind, size, share))
    return tuple(planned)


def clipping(setup: Setup) -> str:
    """Describe for the certificate how contributions are bounded.

    Stored plans are compared with these words (:func:`check`), so a plan with other words is refused.
    """
    schedule = setup.schedule
    sums = "Means and moments" if schedule.means_share else "Moments"
    tails = f" Tails: C = {clip_of_tails(features(setup)):.4g}." if schedule.tails_share else ""
    return (
        f"Each unit's contribution to a query is clipped to norm C (L2 norm; for matrices, Frobenius norm), divided by "
        f"C/2^{GRID_BITS} and rounded to integers whose squares sum to at most 2^{2 * GRID_BITS}. Lengths: C = 1. "
        f"{sums}: C is about twice a noised root mean square length.{tails} Information matrices: "
        f"{_of_matrices(schedule)}. Bounded scores, with weights that do not depend on targets: "
        f"C = {score_bound(schedule):.4g}. Matrices and scores are in the metric of the information measured so far. "
        f"{_METRICS} These values of C assume a unit in every slot; C grows as the noised count of units falls. "
        f"{_STEEP_SLOPES}{_at_zero(setup)}"
    )


def _of_matrices(schedule: Schedule) -> str:
    wide, last = information_bound(schedule, 0), information_bound(schedule, schedule.rounds - 1)
    narrow, stated = information_bound(schedule, 0, 1.0), f"C = {wide:.4g} ({last:.4g} in the last round)"
    if not schedule.tails_share or f"{narrow:.4g}" == f"{wide:.4g}":
        return stated
    return f"{stated}, and down to {narrow:.4g} if no column can be a rare level that is not measured well"


def _at_zero(setup: Setup) -> str:
    if not conceivable(setup):
        return ""
    return (
        " If noised answers show nearly isotropic rows, scores may be asked at a parameter without slopes, by the "
        f"same kind of weights, with C = {bound_of(features(setup)):.4g} in standard deviations of the columns."
    )


class OtherVersion(Exception):
    """A plan of another version: its bounds or queries differ, so it is not carried out."""


def check(plan: MechanismPlan, setup: Setup) -> None:
    """Raise :class:`OtherVersion` unless ``plan`` is the one that ``setup`` makes, noise up to rounding."""
    made = queries(setup)
    alike = len(plan.queries) == len(made) and all(map(_alike, plan.queries, made))
    if plan.clipping != clipping(setup) or not alike:
        raise OtherVersion


def _alike(one: PlannedQuery, other: PlannedQuery) -> bool:
    shapes = [(each.kind, each.length, each.count, each.event.sampling_rate) for each in (one, other)]
    noises = (each.event.noise_multiplier for each in (one, other))
    return shapes[0] == shapes[1] and math.isclose(*noises, rel_tol=_ROUNDING)


def warnings(size: int, problem: Problem, schedule: Schedule) -> tuple[str, ...]:
    """Warn of plans whose result will be inaccurate, before budget is spent."""
    found = list(warn_of_size(size, problem.model))
    if schedule.informed and schedule.resolution > UNRESOLVED:
        found.append(
            "with this many parameters and this much noise, the shape of the posterior is known only "
            "roughly, and its width is likely to be too large in some directions; fewer features, more slots or a "
            "larger epsilon help"
        )
    return tuple(found)
