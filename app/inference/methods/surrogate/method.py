"""The method ``dp-psvi-surrogate``, as the registry calls it. The package has a map of the modules."""

from dataclasses import replace
from typing import Final

import numpy as np

from app.inference.core.bounds import WITHIN_BOUNDS
from app.inference.core.capabilities import Artefact, Capability
from app.inference.core.facts import DeclaredFacts
from app.inference.core.knobs import Choice, Parameter, Switch
from app.inference.core.plan import Mechanism, MechanismPlan, PlanRequest
from app.inference.core.problems import Problem, make_problem
from app.inference.core.query import Oracle
from app.inference.core.release import Pseudocoreset
from app.inference.methods.private import check_parameters
from app.inference.methods.requests import check_size
from app.inference.methods.surrogate import planning
from app.inference.methods.surrogate.openings import open_next
from app.inference.methods.surrogate.planning import RATE, ROUNDS, VERSION
from app.inference.methods.surrogate.release import fit_final_points, release
from app.inference.methods.surrogate.rounds import ask_excess, ask_matrix, ask_residuals, ask_score
from app.inference.methods.surrogate.schedule import Ask
from app.inference.methods.surrogate.state import Opening, Result, Search, Setup, State
from app.inference.private_zone.mechanisms import GRID_BITS


class OneBelief:
    """Private pseudocoresets by one belief about the rows; stateless."""

    id = "dp-psvi-surrogate"
    description = "Private pseudocoresets from about two dozen noised queries of the whole table. The default method."
    private = True
    needs = frozenset({Capability.SCORES, Capability.INFORMATION})
    leaves = Artefact.POINTS
    parameters: tuple[Parameter | Choice | Switch, ...] = (ROUNDS, RATE, WITHIN_BOUNDS, VERSION)

    def make_problem(self, request: PlanRequest | MechanismPlan, facts: DeclaredFacts) -> Problem:
        """Make model, design and prior; a subclass may decorate the model."""
        return make_problem(request.model, facts)

    def plan(self, request: PlanRequest, facts: DeclaredFacts) -> MechanismPlan:
        """Plan the first queries, then rounds of an information matrix and a score.

        Raises:
            InvalidRequest: pointing at the member of the request that is at fault.
        """
        check_size(request.size)
        check_parameters(request, self.parameters)
        problem = self.make_problem(request, facts)
        within = bool(request.parameters.get(WITHIN_BOUNDS.name, WITHIN_BOUNDS.default))
        schedule = planning.make_schedule(request, facts, problem, request.parameters.get(ROUNDS.name))
        setup = planning.make_setup(problem, schedule, facts, request.size, within_bounds=within)
        chosen = {} if within == WITHIN_BOUNDS.default else {WITHIN_BOUNDS.name: within}
        plan = MechanismPlan(
            method=self.id,
            size=request.size,
            model=request.model,
            parameters={ROUNDS.name: schedule.rounds, **chosen, VERSION.name: VERSION.default},
            mechanism=None,
            clipping="",
            grid_bits=GRID_BITS,
            queries=(),
            steps=0,
            warnings=planning.list_warnings(request, facts, problem, schedule),
        )
        return _with_queries(plan, setup)

    def shorten(self, plan: MechanismPlan, facts: DeclaredFacts) -> MechanismPlan:
        """Shorten a plan for a dry run: the first queries, the fewest rounds and the fewest points.

        Raises:
            OtherVersion: for a plan of another version.
        """
        planning.check_version(plan)
        problem, rounds = self.make_problem(plan, facts), int(ROUNDS.minimum)
        schedule = replace(planning.read_schedule(plan, facts, problem), asked_rounds=rounds)
        size = min(plan.size, problem.model.smallest_exact)
        setup = planning.make_setup(problem, schedule, facts, size, within_bounds=False)
        shorter = replace(plan, size=size, parameters={**plan.parameters, ROUNDS.name: rounds})
        return _with_queries(shorter, setup)

    def init(self, plan: MechanismPlan, facts: DeclaredFacts, rng: np.random.Generator) -> State:
        """Make the first state, before any query.

        Raises:
            OtherVersion: for a plan that this version would not make.
        """
        problem = self.make_problem(plan, facts)
        within = bool(plan.parameters.get(WITHIN_BOUNDS.name, False))
        schedule = planning.read_schedule(plan, facts, problem)
        setup = planning.make_setup(problem, schedule, facts, plan.size, within_bounds=within)
        planning.check_plan(plan, setup)
        return Opening(setup)

    def step(self, rng: np.random.Generator, state: State, oracle: Oracle) -> State:
        """Ask the next query; after the last one, fit the points.

        Floating-point warnings are off: states stay finite by clamps, for any answers.

        Raises:
            ValueError: all queries have been asked.
        """
        with np.errstate(all="ignore"):
            if isinstance(state, Opening):
                return open_next(rng, state, oracle)
            if isinstance(state, Search):
                return _next_in_round(rng, state, oracle)
        raise ValueError("all queries have been asked")

    def finish(self, state: State) -> Pseudocoreset:
        """Return the points, with their diagnostics, error and reliability.

        Raises:
            ValueError: before the last query has been answered.
        """
        if not isinstance(state, Result):
            raise ValueError("a surrogate is released after its last query")
        with np.errstate(all="ignore"):
            return release(state)


def _next_in_round(rng: np.random.Generator, search: Search, oracle: Oracle) -> State:
    schedule = search.setup.schedule
    kind, turn = schedule.program[search.done - schedule.openings]
    moved = replace(_ASKS[kind](rng, search, oracle, turn), done=search.done + 1)
    return fit_final_points(rng, moved) if moved.done == schedule.openings + len(schedule.program) else moved


_ASKS: Final = {Ask.MATRIX: ask_matrix, Ask.RESIDUALS: ask_residuals, Ask.EXCESS: ask_excess, Ask.SCORE: ask_score}


def _with_queries(plan: MechanismPlan, setup: Setup) -> MechanismPlan:
    queries, schedule = planning.plan_queries(setup), setup.schedule
    steps = sum(query.count for query in queries)
    return replace(
        plan,
        mechanism=Mechanism(schedule.sigma, schedule.rate, steps),
        clipping=planning.describe_clipping(setup),
        queries=queries,
        steps=steps,
    )
