"""Variational inference in private settings: the method ``vips``.

Each iteration computes, for every unit, the expected statistics of its hidden variables under the current belief, and
asks for their noised sum. Answers are averaged; the next belief follows from the averages, which is post-processing.
Source: Park, Foulds, Chaudhuri & Welling, *Variational Bayes in private settings*, 2020, Algorithms 2 and 5. It differs
in three ways: statistics that do not depend on the belief are asked once, the price is that of sums under zero-out, and
*statistics* are averaged instead of natural parameters.
"""

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Final

import numpy as np

from app.errors import InvalidRequest
from app.inference.conjugate import ConjugateProblem, make_conjugate_problem
from app.inference.core.capabilities import Artefact, Capability
from app.inference.core.design import Design
from app.inference.core.facts import DeclaredFacts
from app.inference.core.knobs import Knob, Parameter
from app.inference.core.model import Array64
from app.inference.core.plan import Mechanism, MechanismPlan, PlanRequest
from app.inference.core.problems import make_problem
from app.inference.core.query import Oracle, Query
from app.inference.core.release import Released
from app.inference.core.statistics import CERTAIN, TOPIC_SUM, ConjugateModel, compute_units, split_answer
from app.inference.methods.private import check_parameters, make_mechanism, shorten_queries, warn_of_size
from app.inference.methods.requests import check_size
from app.inference.methods.vips.release import make_release
from app.inference.methods.vips.schedule import make_schedule, plan_queries
from app.inference.methods.vips.state import Setup, State
from app.inference.models import find_family
from app.inference.private_zone.mechanisms import GRID_BITS
from app.inference.private_zone.queries import LengthHistogram, StatisticSum, TopicSum

MOST_ITERATIONS: Final = 1000
ITERATIONS: Final = Parameter(
    "iterations",
    "integer",
    1,
    MOST_ITERATIONS,
    "Number of iterations; each asks one query. By default, it depends on the model. "
    "A model whose statistics do not change has one.",
)
RATE: Final = Parameter(
    "sampling_rate",
    "number",
    0,
    1,
    "Poisson sampling rate of the repeated query. By default, it depends on the model.",
    exclusive_minimum=True,
)
DELAY: Final = Parameter("delay", "number", 0, 1e6, "Delay of the averages, by default 0: see forgetting.")
FORGETTING: Final = Parameter(
    "forgetting",
    "number",
    0,
    1,
    "Answer t has the weight (delay + t)**-forgetting in the average, and the first one 1. 0 keeps the last answer. By "
    "default 0.5. At a sampling rate of 1, without delay and forgetting, weights follow from the answers' noise.",
)
USUAL_FORGETTING: Final = 0.5
CLIPPING: Final = Parameter(
    "clipping_share",
    "number",
    0,
    1,
    "Clipping norm of a unit's statistics, as a share of the largest possible one. Only for models of documents. By "
    "default, 0.5 / sqrt(max_rows).",
    exclusive_minimum=True,
)


class Vips:
    """Variational inference by noised statistics."""

    id = "vips"
    description = (
        "Variational inference for conjugate-exponential models: noised sums of expected statistics. Releases the "
        "belief, and points if it is normal."
    )
    private = True
    needs = frozenset({Capability.STATISTICS})
    leaves = Artefact.BELIEF
    parameters: tuple[Knob, ...] = (ITERATIONS, RATE, DELAY, FORGETTING, CLIPPING)

    def plan(self, request: PlanRequest, facts: DeclaredFacts) -> MechanismPlan:
        """Plan the opening queries that the model needs, then all iterations.

        Raises:
            InvalidRequest: pointing at the member of the request that is at fault.
        """
        check_size(request.size)
        problem = make_conjugate_problem(request.model, facts)
        check_parameters(request, self.parameters)
        mechanism = self._make_mechanism(request, problem, facts)
        schedule = make_schedule(problem.model, mechanism)
        queries = plan_queries(problem.model, schedule)
        return MechanismPlan(
            method=self.id,
            size=request.size,
            model=request.model,
            parameters=_choose_averaging(request, mechanism) | _choose_share(request, problem.model),
            mechanism=mechanism,
            clipping=_describe_clipping(problem.model),
            grid_bits=GRID_BITS,
            queries=queries,
            steps=sum(query.count for query in queries),
            warnings=_warn_of_size(request, facts),
        )

    def shorten(self, plan: MechanismPlan, facts: DeclaredFacts) -> MechanismPlan:
        """Keep every kind of query at most twice."""
        return shorten_queries(plan)

    def init(self, plan: MechanismPlan, facts: DeclaredFacts, rng: np.random.Generator) -> State:
        """Start at the belief that depends on no row."""
        if plan.mechanism is None:
            raise ValueError("a private method runs under a mechanism")
        model, design = make_conjugate_problem(plan.model, facts)
        setup = Setup(model, design, plan, facts, make_schedule(model, plan.mechanism))
        return State(setup, 0, model.largest_radius, model.start(rng))

    def step(self, rng: np.random.Generator, state: State, oracle: Oracle) -> State:
        """Ask the next query, and update radius, averages and belief."""
        schedule = state.setup.schedule
        if state.done == 0 and schedule.lengths is not None:
            asked = replace(state, radius=_ask_radius(state, oracle, schedule.lengths))
        else:
            asked = _ask_statistics(state, oracle, moving=state.done >= schedule.opening)
        asked = replace(asked, done=state.done + 1)
        if asked.done < asked.setup.plan.steps:
            return asked
        return replace(asked, released=make_release(asked, rng))

    def finish(self, state: State) -> Released:
        """Release the belief of the averages.

        Raises:
            ValueError: before the last query has been answered.
        """
        if state.released is None:
            raise ValueError("a belief is released after the last query")
        return state.released

    def _make_mechanism(self, request: PlanRequest, problem: ConjugateProblem, facts: DeclaredFacts) -> Mechanism:
        model = problem.model
        batch = model.usual_batch
        usual = 1.0 if batch is None else min(1.0, batch / facts.slots)
        count = replace(ITERATIONS, default=model.usual_iterations)
        mechanism = make_mechanism(request, rate=RATE, count=count, usual=usual)
        if not model.list_blocks(model.largest_radius, moving=True) and (
            (mechanism.sampling_rate, mechanism.iterations) != (1.0, 1)
        ):
            pointer = "/privacy" if request.mechanism is not None else "/parameters"
            raise InvalidRequest.at(
                pointer, "This model needs one query of all rows. Use a sampling rate of 1 and one iteration."
            )
        return mechanism


def _ask_radius(state: State, oracle: Oracle, noise: float) -> float:
    """Ask for the lengths of units' sums of rows; choose a radius that cuts about the model's share of them."""
    model, design = state.setup.model, state.setup.design
    assert isinstance(design, Design), "only design rows are cut"
    largest = model.largest_radius**2
    counts = oracle.ask(LengthHistogram(1.0, design.width, design.intercept, largest=largest, squares=False))
    return math.sqrt(choose_square(counts, noise, model.tail, largest))


def choose_square(counts: Array64, noise: float, share: float, largest: float) -> float:
    """Choose the squared radius from a histogram of squared lengths.

    Bin b counts the lengths in ``[2**-(b + 1), 2**-b) * largest``.

    About ``share`` of the rows are longer, or as many as noise could hide. Within a bin, logarithms of lengths count as
    evenly spread.

    Args:
        counts: noised, ``(bins,)``.
        noise: standard deviation of each count.
        share: of rows above the radius.
        largest: the upper edge of the first bin.
    """
    total = max(float(counts.sum()), 1.0)
    above = 0.0
    for place, count in enumerate(counts):
        most = max(share * total, CERTAIN * noise * math.sqrt(place + 1))
        if above + count > most:
            return float(largest * 2.0 ** -(place + min(max((most - above) / count, 0.0), 1.0)))
        above += float(count)
    return largest


def _ask_statistics(state: State, oracle: Oracle, *, moving: bool) -> State:
    """Ask the moving or the fixed statistics, and average them with earlier answers."""
    setup = state.setup
    model, schedule = setup.model, setup.schedule
    blocks = model.list_blocks(state.radius, moving=moving)
    share = float(setup.plan.parameters.get(CLIPPING.name, 1.0))
    units = compute_units(blocks, share * setup.facts.rows_per_unit)
    rate = schedule.moving.sampling_rate if moving and schedule.moving is not None else 1.0
    noise = schedule.moving.noise_multiplier if moving and schedule.moving is not None else schedule.fixed
    assert noise is not None, "the schedule has this query"
    query = _make_query(state, units, moving=moving)
    answers = split_answer(oracle.ask(query) / rate, blocks)
    noises = {name: (noise * values[0] / rate) ** 2 for name, values in split_answer(units, blocks).items()}
    weight = _weigh(state, answers, noises) if moving else 1.0
    sums = dict(state.sums) | {name: _mix(state.sums.get(name), new, weight) for name, new in answers.items()}
    variances = dict(state.variances)
    for name, variance in noises.items():
        variances[name] = (1 - weight) ** 2 * state.variances.get(name, 0.0) + weight**2 * variance
    updated = replace(state, sums=sums, variances=variances)
    if len(sums) < sum(len(model.list_blocks(state.radius, moving=part)) for part in (False, True)):
        return updated
    return replace(updated, belief=model.update(updated.averages, state.belief))


def _mix(old: Array64 | None, new: Array64, weight: float) -> Array64:
    return new if old is None else (1 - weight) * old + weight * new


def _weigh(state: State, answers: Mapping[str, Array64], noises: Mapping[str, float]) -> float:
    """Compute the weight of the next answer in the average: by its noise, or Robbins-Monro (Hoffman et al. 2013)."""
    setup = state.setup
    time = state.done - setup.schedule.opening
    if time == 0:
        return 1.0
    if FORGETTING.name not in setup.plan.parameters:
        squares = [(new - state.sums[name]) ** 2 / noises[name] for name, new in answers.items()]
        return weigh_by_noise(np.concatenate(squares), max(state.variances[name] / noises[name] for name in answers))
    delay, forgetting = (float(setup.plan.parameters[knob.name]) for knob in (DELAY, FORGETTING))
    return float(min(1.0, (delay + time) ** -forgetting))


def weigh_by_noise(squares: Array64, ratio: float) -> float:
    """Compute the weight at which the average has the least squared error.

    Without drift, all answers count the same. An average that is far from the answer belongs to old beliefs.

    Args:
        squares: squared differences between answer and average, in variances of the answer's noise.
        ratio: variance of the average's noise, in the same unit.
    """
    return 1 - 1 / max(1 + ratio, float(np.mean(squares)))


def _warn_of_size(request: PlanRequest, facts: DeclaredFacts) -> tuple[str, ...]:
    """Warn of too few points, if the release has points."""
    if find_family(request.model.family).bind is None:
        return ()
    return warn_of_size(request.size, make_problem(request.model, facts).model)


def _choose_averaging(request: PlanRequest, mechanism: Mechanism) -> dict[str, float]:
    """Choose delay and forgetting; without them, weights follow from the noise."""
    stated = {
        knob.name: float(request.parameters[knob.name])
        for knob in (DELAY, FORGETTING)
        if knob.name in request.parameters
    }
    if not stated and mechanism.sampling_rate == 1:
        return {}
    return {DELAY.name: 0.0, FORGETTING.name: USUAL_FORGETTING} | stated


def _choose_share(request: PlanRequest, model: ConjugateModel) -> dict[str, float]:
    """Choose the share of the largest norm for the clipping norm; some models have none."""
    stated = request.parameters.get(CLIPPING.name)
    if model.usual_share is None:
        if stated is not None:
            raise InvalidRequest.at(f"/parameters/{CLIPPING.name}", "This model is not clipped; leave it out.")
        return {}
    return {CLIPPING.name: float(model.usual_share if stated is None else stated)}


def _make_query(state: State, units: Array64, *, moving: bool) -> Query:
    """Make the query of the model's kind."""
    if state.setup.model.kind == TOPIC_SUM:
        return TopicSum(state.belief, float(units[0]))
    return StatisticSum(state.belief, units, state.radius, moving)


def _describe_clipping(model: ConjugateModel) -> str:
    rounded = (
        f"clipped to L2 norm 1, divided by 2^-{GRID_BITS} and rounded to integers whose squares sum to at most "
        f"2^{2 * GRID_BITS}."
    )
    if model.kind == TOPIC_SUM:
        return (
            "Each unit's rows are one document. Its expected numbers of words by topic are divided by the clipping "
            f"norm, clipping_share times the largest number of rows of a unit, {rounded}"
        )
    radius = "the largest possible length"
    if model.tail > 0:
        radius = f"a length above which, by the noised histogram, are about {model.tail:g} of the units' sums of rows"
    return (
        "A row longer than R counts with the weight R^2 / length^2. Each unit's statistics, summed over its rows and "
        f"divided by their units, are {rounded} R is {radius}. The units follow from the bounds of the statistics at R."
    )
