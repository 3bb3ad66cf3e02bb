"""Plans of a surrogate: from a request and declared facts to the questions, their noise and what is said of them."""

from dataclasses import replace

import numpy as np

from app.errors import InvalidRequest
from app.inference.mechanisms import GRID_BITS, MAX_SCALE
from app.inference.methods.private import NOISE, sampled_event, size_warnings
from app.inference.problems import Problem
from app.inference.protocol import DeclaredFacts, MechanismPlan, PlannedQuery, PlanRequest
from app.inference.questions import BoundedScoreSum, InformationSum
from app.inference.surrogate.bearing import bound_of
from app.inference.surrogate.beginning import columns, features, lengths, means, moments, tails
from app.inference.surrogate.bounds import information_bound, score_bound
from app.inference.surrogate.first_bearing import conceivable
from app.inference.surrogate.schedule import FEWEST_OPENINGS, UNRESOLVED, Schedule
from app.inference.surrogate.setting import RATE, ROUNDS, labels, one_predictor
from app.inference.surrogate.state import Setup
from app.inference.surrogate.winsorised import clip_of_tails

_ROOM = "that of matrices wider along known rare levels"
_ROOM_FOR_UNSEEN = f"{_ROOM} and where noise may hide one"
_ROOM_IN_SCORES = "that of scores wider along rarer values that the prior pulls at"
_ROOM_FOR_DISPUTED = f"{_ROOM_IN_SCORES}, of columns too that matrices know far less of than rows seem to tell"
_SLOPE_APART = "; where labels are steep, the part of a score along the parameter is bounded by itself, within C in all"
_WITHOUT_SLOPES = "; scores of rows that seem isotropic by noised answers"


def schedule_for(request: PlanRequest, facts: DeclaredFacts, problem: Problem) -> Schedule:
    """From a mechanism, whose iterations are questions, or from the noise multiplier of a target."""
    mechanism = request.mechanism
    if mechanism is None:
        if request.noise_multiplier is None or not 0 < request.noise_multiplier <= MAX_SCALE:
            raise InvalidRequest.at("/privacy", "name a target epsilon within reach, or a mechanism")
        sigma, rate = request.noise_multiplier, float(request.parameters.get(RATE.name, 1.0))
    else:
        NOISE.check(mechanism.noise_multiplier, "/privacy/noise_multiplier")
        RATE.check(mechanism.sampling_rate, "/privacy/sampling_rate")
        sigma, rate = mechanism.noise_multiplier, mechanism.sampling_rate
    found = Schedule(
        sigma,
        rate,
        facts.slots,
        problem.model.dimension,
        informed=problem.design.intercept,
        asked_rounds=request.parameters.get(ROUNDS.name),
        one_predictor=one_predictor(problem),
        asked_means=None if facts.rows_per_unit == 1 else 0.0,
        labels=labels(problem),
    )
    return found if mechanism is None else _of_questions(mechanism.iterations, found)


def _of_questions(iterations: int, schedule: Schedule) -> Schedule:
    """With so many questions: where they would not make whole rounds, the last kind of opening is left out."""
    each, openings = 2 if schedule.informed else 1, schedule.openings
    if (iterations - openings) % each:
        schedule = replace(schedule, asked_tails=0.0) if schedule.tails_share else replace(schedule, asked_means=0.0)
    rounds, rest = divmod(iterations - schedule.openings, each)
    if rest or not ROUNDS.minimum <= rounds <= ROUNDS.maximum:
        least, most = int(ROUNDS.minimum), int(ROUNDS.maximum)
        few = f"{openings - 1} or {openings}" if openings > FEWEST_OPENINGS else str(openings)
        asked = f"must be {few} questions, and {each} for each of {least} to {most} rounds"
        raise InvalidRequest.at("/privacy/iterations", asked)
    return replace(schedule, asked_rounds=rounds)


def queries(setup: Setup) -> tuple[PlannedQuery, ...]:
    """In the order in which they are asked."""
    schedule, size = setup.schedule, setup.model.dimension

    def query(kind: str, length: int, share: float) -> PlannedQuery:
        return PlannedQuery(kind, length, sampled_event(schedule.multiplier(share), schedule.rate))

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
    """What a certificate says of how contributions are bounded."""
    schedule = setup.schedule
    sums = "Means and moments" if schedule.means_share else "Moments"
    further = f"Tails: C = {clip_of_tails(features(setup)):.4g}. " if schedule.tails_share else ""
    wide, narrow = (f"{information_bound(schedule, 0, concentrated):.4g}" for concentrated in (np.inf, 1.0))
    asks = schedule.tails_share and narrow != wide
    narrower = f", down to {narrow} where no column stands out as a rare level that is not known well" if asks else ""
    at_zero = (
        f"{_WITHOUT_SLOPES} may be asked at a parameter without slopes, by the same kind of weights, "
        f"with C = {bound_of(features(setup)):.4g} in standard deviations of their columns"
    )
    return (
        f"each unit's contribution to a question is bounded in L2 norm (matrices: Frobenius) by C, divided by "
        f"C/2^{GRID_BITS} and rounded so that its squared norm is at most 2^{2 * GRID_BITS}. Lengths: C = 1. {sums}: "
        f"about twice a noised root mean square length. {further}Information matrices: C = "
        f"{wide} ({information_bound(schedule, schedule.rounds - 1):.4g} in the last "
        f"round){narrower}; scores, by weights that know nothing of targets: {_stated(schedule)}; both in "
        f"the metric of the information so far, {_ROOM_FOR_UNSEEN}, {_ROOM_FOR_DISPUTED}, and as if every slot "
        f"held a unit: they grow as the noised count of units shrinks{_SLOPE_APART}"
    ) + (at_zero if conceivable(setup) else "")


def _stated(schedule: Schedule) -> str:
    return f"C = {score_bound(schedule):.4g}"


def allows_wider_scores(plan: MechanismPlan, schedule: Schedule) -> bool:
    """Whether its words on clipping state the bound of scores as it is now; others are carried out as they say."""
    return f"targets: {_stated(schedule)};" in plan.clipping


def allows_bearings(plan: MechanismPlan) -> bool:
    """Whether its words on clipping state scores without slopes; a plan that does not is carried out without."""
    return _WITHOUT_SLOPES in plan.clipping


def allows_room(plan: MechanismPlan) -> bool:
    """Whether its words on clipping state a metric of their own for rare levels, and narrow bounds beside them."""
    return _ROOM in plan.clipping


def allows_room_for_unseen(plan: MechanismPlan) -> bool:
    """Whether its words on clipping state that metric for levels that noise may hide, too."""
    return _ROOM_FOR_UNSEEN in plan.clipping


def allows_room_in_scores(plan: MechanismPlan) -> bool:
    """Whether its words on clipping state a wider metric for scores."""
    return _ROOM_IN_SCORES in plan.clipping


def allows_room_for_disputed(plan: MechanismPlan) -> bool:
    """Whether its words on clipping state that metric for columns that matrices know little of, too."""
    return _ROOM_FOR_DISPUTED in plan.clipping


def allows_slope_apart(plan: MechanismPlan) -> bool:
    """Whether its words on clipping state that a part of scores may be bounded by itself."""
    return _SLOPE_APART in plan.clipping


def warnings(size: int, problem: Problem, schedule: Schedule) -> tuple[str, ...]:
    """What a quote says before anything is spent."""
    found = list(size_warnings(size, problem.model))
    if schedule.informed and schedule.resolution > UNRESOLVED:
        found.append(
            "so many parameters at so much noise: the posterior's shape will be known roughly, and its width is likely "
            "to be too large in some directions; fewer features, more slots or a larger epsilon help"
        )
    return tuple(found)
