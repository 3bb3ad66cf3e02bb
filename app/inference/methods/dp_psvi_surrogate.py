"""DP-PSVI by a surrogate: a few well-placed questions of whole tables, then points that represent what they say.

Method id ``dp-psvi-surrogate``. Some dozen rounds of two questions each, every one a Gaussian mechanism with a noise of
its own: an information (Fisher) matrix and a score at the current parameter, both in the metric of what is known of
the information so far, in which noise costs least. Scores are bounded by a weight that depends on the design row
alone, which leaves them unbiased whatever the design (Kuensch, Stefanski & Carroll, *JASA* 84, 1989). All scores
together say where the mode is, and the points ``(u, w)`` are fitted to mode and information exactly. See
``app/inference/surrogate`` for each part.

One set of defaults serves all tables. Sampling below q = 1 is possible, and costs accuracy.
"""

from dataclasses import replace

import numpy as np

from app.errors import InvalidRequest
from app.inference.bounds import WITHIN_BOUNDS
from app.inference.mechanisms import GRID_BITS, MAX_SCALE
from app.inference.methods.private import NOISE, check_parameters, check_size, sampled_event, size_warnings
from app.inference.problems import Problem, model_for
from app.inference.protocol import (
    Choice,
    DeclaredFacts,
    Mechanism,
    MechanismPlan,
    Oracle,
    Parameter,
    PlannedQuery,
    PlanRequest,
    Pseudocoreset,
    Switch,
)
from app.inference.questions import BoundedScoreSum, InformationMomentSum, InformationSum, LengthHistogram, MomentSum
from app.inference.surrogate.bearing import bound_of
from app.inference.surrogate.beginning import (
    QUESTIONS,
    columns,
    conceivable,
    features,
    lengths,
    moments,
    nothing_known,
    opened,
)
from app.inference.surrogate.curvature import Curvature
from app.inference.surrogate.declared import declared
from app.inference.surrogate.guard import steadied
from app.inference.surrogate.release import fitted, released
from app.inference.surrogate.rounds import informed, scored
from app.inference.surrogate.schedule import COLUMNWISE, UNRESOLVED, Schedule
from app.inference.surrogate.state import Setup, State
from app.inference.surrogate.toward import follows, headed
from app.privacy.events import GaussianEvent, PoissonSampledEvent

ROUNDS = Parameter("rounds", "integer", 2, 40, "Rounds of an information matrix and a score; the default follows.")
RATE = Parameter(
    "sampling_rate", "number", 0, 1, "Poisson sampling rate q of every question.", default=1.0, exclusive_minimum=True
)
_INFORMATION = frozenset({InformationSum.kind, InformationMomentSum.kind})
_MOMENTS, _LENGTHS = frozenset({MomentSum.kind}), frozenset({LengthHistogram.kind})
_WITHOUT_SLOPES = "; scores of rows that seem isotropic by noised answers"
"""What a plan says of clipping where it allows that; one that does not say so is carried out without."""


class DpPsviSurrogate:
    """The registered method; stateless."""

    id = "dp-psvi-surrogate"
    description = "Private pseudocoresets by few questions of whole tables and an exact fit: the one to start with."
    private = True
    parameters: tuple[Parameter | Choice | Switch, ...] = (ROUNDS, RATE, WITHIN_BOUNDS)

    def plan(self, request: PlanRequest, facts: DeclaredFacts) -> MechanismPlan:
        """Two histograms of lengths, one sum of moments, then rounds of an information matrix and a score.

        Raises:
            InvalidRequest: pointing at the member of the request that is at fault.
        """
        check_size(request.size)
        check_parameters(request, self.parameters)
        problem = model_for(request.model, facts)
        within = request.parameters.get(WITHIN_BOUNDS.name, WITHIN_BOUNDS.default)
        chosen = {} if within == WITHIN_BOUNDS.default else {WITHIN_BOUNDS.name: within}
        schedule = _schedule(request, facts, problem)
        setup = _setup(problem, schedule, facts, request.size)
        queries = _queries(setup)
        return MechanismPlan(
            method=self.id,
            size=request.size,
            model=request.model,
            parameters={ROUNDS.name: schedule.rounds, **chosen},
            mechanism=Mechanism(schedule.sigma, schedule.rate, sum(query.count for query in queries)),
            clipping=_clipping(setup),
            grid_bits=GRID_BITS,
            queries=queries,
            steps=sum(query.count for query in queries),
            warnings=_warnings(request.size, problem, schedule),
        )

    def init(self, plan: MechanismPlan, facts: DeclaredFacts, rng: np.random.Generator) -> State:
        """Nothing known: the parameter at zero, and the prior's information."""
        if plan.mechanism is None:
            raise ValueError("a private method runs under a mechanism")
        problem = model_for(plan.model, facts)
        mechanism, rounds = plan.mechanism, int(plan.parameters[ROUNDS.name])
        schedule = Schedule(
            mechanism.noise_multiplier,
            mechanism.sampling_rate,
            facts.slots,
            problem.model.dimension,
            informed=problem.design.intercept,
            asked_rounds=rounds,
            one_predictor=_one_predictor(problem),
            asked_information=_asked_share(plan, _INFORMATION),
            asked_moments=_asked_share(plan, _MOMENTS),
            asked_lengths=_asked_share(plan, _LENGTHS),
        )
        theta = np.zeros(problem.model.dimension)
        within = bool(plan.parameters.get(WITHIN_BOUNDS.name, False))
        setup = _setup(problem, schedule, facts, plan.size, within_bounds=within)
        setup = replace(setup, bearings=_WITHOUT_SLOPES in plan.clipping)
        return State(setup, 0, 1.0, 1.0, nothing_known(setup), theta, problem.prior.precision(theta), theta)

    def step(self, rng: np.random.Generator, state: State, oracle: Oracle) -> tuple[State, dict[str, float]]:
        """The next question and what follows from its answer; after the last one, the points."""
        schedule, asked = state.setup.schedule, state.done - QUESTIONS
        turn, second = divmod(asked, 2) if schedule.informed else (asked, 1)
        with np.errstate(all="ignore"):
            if asked < 0:
                moved = opened(rng, state, oracle)
            elif second:
                moved = headed(state, oracle, turn) if follows(state, turn) else scored(rng, state, oracle, turn)
            else:
                moved = informed(state, oracle, turn)
            moved = steadied(replace(moved, done=state.done + 1), state)
        if second and turn == schedule.rounds - 1:
            moved = replace(moved, fitted=fitted(rng, moved))
        return moved, {}

    def finish(self, state: State) -> Pseudocoreset:
        """The points, with what may be said of them."""
        return released(state)


def _asked_share(plan: MechanismPlan, kinds: frozenset[str]) -> float | None:
    """The share of a question of these kinds as the plan has it, whatever the default has become since it was made."""
    for query in plan.queries:
        event = query.event.event if isinstance(query.event, PoissonSampledEvent) else query.event
        if query.kind in kinds and isinstance(event, GaussianEvent) and event.noise_multiplier < MAX_SCALE:
            assert plan.mechanism is not None
            return (plan.mechanism.noise_multiplier / event.noise_multiplier) ** 2
    return None


def _setup(
    problem: Problem, schedule: Schedule, facts: DeclaredFacts, size: int, *, within_bounds: bool = False
) -> Setup:
    model, design, prior = problem
    plain = _one_predictor(problem)
    curvature = Curvature(model, design.width) if plain else None
    bends = model.predictors > 1
    if curvature is not None:
        flat, bent = curvature(np.array([0.0, 1.0]))
        bends = bool(abs(flat - bent) > 1e-6 * flat)
    columnwise = plain and schedule.resolution > COLUMNWISE
    return Setup(
        model,
        design,
        prior,
        declared(design),
        size,
        within_bounds,
        schedule,
        curvature,
        bends,
        columnwise,
        facts.rows_per_unit,
    )


def _one_predictor(problem: Problem) -> bool:
    """And no other parameter."""
    model, design, _ = problem
    return model.predictors == 1 and model.dimension == design.width and design.intercept and design.width > 1


def _schedule(request: PlanRequest, facts: DeclaredFacts, problem: Problem) -> Schedule:
    """From a mechanism, whose iterations are questions, or from the noise multiplier of a target."""
    informed, dimension = problem.design.intercept, problem.model.dimension
    mechanism, rounds = request.mechanism, request.parameters.get(ROUNDS.name)
    if mechanism is None:
        if request.noise_multiplier is None or not 0 < request.noise_multiplier <= MAX_SCALE:
            raise InvalidRequest.at("/privacy", "name a target epsilon within reach, or a mechanism")
        sigma, rate = request.noise_multiplier, float(request.parameters.get(RATE.name, 1.0))
    else:
        NOISE.check(mechanism.noise_multiplier, "/privacy/noise_multiplier")
        RATE.check(mechanism.sampling_rate, "/privacy/sampling_rate")
        each = 2 if informed else 1
        rounds, rest = divmod(mechanism.iterations - QUESTIONS, each)
        if rest or not ROUNDS.minimum <= rounds <= ROUNDS.maximum:
            least, most = int(ROUNDS.minimum), int(ROUNDS.maximum)
            asked = f"must be {QUESTIONS} questions, and {each} for each of {least} to {most} rounds"
            raise InvalidRequest.at("/privacy/iterations", asked)
        sigma, rate = mechanism.noise_multiplier, mechanism.sampling_rate
    return Schedule(
        sigma,
        rate,
        facts.slots,
        dimension,
        informed=informed,
        asked_rounds=rounds,
        one_predictor=_one_predictor(problem),
    )


def _queries(setup: Setup) -> tuple[PlannedQuery, ...]:
    schedule, size = setup.schedule, setup.model.dimension

    def query(kind: str, length: int, share: float) -> PlannedQuery:
        return PlannedQuery(kind, length, sampled_event(schedule.multiplier(share), schedule.rate))

    first, sums = lengths(setup, 1.0, squares=False), moments(setup, 1.0, 1.0)
    by_columns = columns(setup, 1.0, np.zeros(size), 1.0)
    queries = [query(first.kind, first.length, schedule.lengths_share)] * 2 + [
        query(sums.kind, sums.length, schedule.moments_share)
    ]
    for share in schedule.score_shares:
        if schedule.informed:
            kind, length = (by_columns.kind, by_columns.length) if setup.columnwise else (InformationSum.kind, size**2)
            queries.append(query(kind, length, schedule.information_share))
        queries.append(query(BoundedScoreSum.kind, size, share))
    return tuple(queries)


def _clipping(setup: Setup) -> str:
    schedule = setup.schedule
    at_zero = (
        f"{_WITHOUT_SLOPES} may be asked at a parameter without slopes, by the same kind of weights, "
        f"with C = {bound_of(features(setup)):.4g} in standard deviations of their columns"
    )
    return (
        f"each unit's contribution to a question is bounded in L2 norm (matrices: Frobenius) by C, divided by "
        f"C/2^{GRID_BITS} and rounded so that its squared norm is at most 2^{2 * GRID_BITS}. Lengths: C = 1. Moments: "
        f"twice the noised root mean square length. Information matrices: C = "
        f"{schedule.information_bound(0):.4g} ({schedule.information_bound(schedule.rounds - 1):.4g} in the last "
        f"round); scores, by weights that know nothing of targets: C = {schedule.score_bound:.4g}; both in the metric "
        f"of the information so far, and as if every slot held a unit: they grow as the noised count of units shrinks"
    ) + (at_zero if conceivable(setup) else "")


def _warnings(size: int, problem: Problem, schedule: Schedule) -> tuple[str, ...]:
    found = list(size_warnings(size, problem.model))
    if schedule.informed and schedule.resolution > UNRESOLVED:
        found.append(
            "so many parameters at so much noise: the posterior's shape will be known roughly, and its width is likely "
            "to be too large in some directions; fewer features, more slots or a larger epsilon help"
        )
    return tuple(found)
