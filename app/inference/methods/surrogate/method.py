"""DP-PSVI by a surrogate: a normal approximation from noised queries, then points fitted to it.

Method id ``dp-psvi-surrogate``. The queries read the whole table. The first ones measure lengths, means, squares and
tails of rows. About a dozen rounds of two queries follow: a Fisher information matrix and a score at the current
parameter. Each query is a Gaussian mechanism with a separate noise multiplier. Both queries of a round use the metric
of the information measured so far, in which noise costs least.

Scores are bounded by a weight that depends on the design row alone, so they are unbiased for every design (Kuensch,
Stefanski & Carroll, *JASA* 84, 1989). All scores together determine the mode, and the points ``(u, w)`` are fitted
exactly to mode and information. The parts are modules of ``app/inference/methods/surrogate``.

One set of defaults serves all tables. A sampling rate below 1 is possible, but it costs accuracy.
"""

from dataclasses import replace

import numpy as np

from app.inference.core.bounds import WITHIN_BOUNDS
from app.inference.core.facts import DeclaredFacts
from app.inference.core.knobs import Choice, Parameter, Switch
from app.inference.core.plan import Mechanism, MechanismPlan, PlanRequest
from app.inference.core.problems import make_problem
from app.inference.core.query import Oracle
from app.inference.core.release import Pseudocoreset
from app.inference.methods.private import check_parameters
from app.inference.methods.requests import check_size
from app.inference.methods.surrogate import planning
from app.inference.methods.surrogate.bearing_rounds import follows, headed
from app.inference.methods.surrogate.mending import steadied
from app.inference.methods.surrogate.opening import nothing_known, opened
from app.inference.methods.surrogate.release import ended, released
from app.inference.methods.surrogate.rounds import informed, scored
from app.inference.methods.surrogate.setting import RATE, ROUNDS, planned, set_up
from app.inference.methods.surrogate.state import State
from app.inference.private_zone.mechanisms import GRID_BITS


class DpPsviSurrogate:
    """The registered method; stateless."""

    id = "dp-psvi-surrogate"
    description = "Private pseudocoresets from about two dozen noised queries of the whole table. The default method."
    private = True
    parameters: tuple[Parameter | Choice | Switch, ...] = (ROUNDS, RATE, WITHIN_BOUNDS)

    def plan(self, request: PlanRequest, facts: DeclaredFacts) -> MechanismPlan:
        """Lengths, means, squares and tails of rows, then rounds of an information matrix and a score.

        Raises:
            InvalidRequest: pointing at the member of the request that is at fault.
        """
        check_size(request.size)
        check_parameters(request, self.parameters)
        problem = make_problem(request.model, facts)
        within = request.parameters.get(WITHIN_BOUNDS.name, WITHIN_BOUNDS.default)
        chosen = {} if within == WITHIN_BOUNDS.default else {WITHIN_BOUNDS.name: within}
        schedule = planning.schedule_for(request, facts, problem)
        setup = set_up(problem, schedule, facts, request.size)
        queries = planning.queries(setup)
        return MechanismPlan(
            method=self.id,
            size=request.size,
            model=request.model,
            parameters={ROUNDS.name: schedule.rounds, **chosen},
            mechanism=Mechanism(schedule.sigma, schedule.rate, sum(query.count for query in queries)),
            clipping=planning.clipping(setup),
            grid_bits=GRID_BITS,
            queries=queries,
            steps=sum(query.count for query in queries),
            warnings=planning.warnings(request.size, problem, schedule),
        )

    def shorten(self, plan: MechanismPlan, facts: DeclaredFacts) -> MechanismPlan:
        """The first queries, and as few rounds as there can be, each of which asks the same."""
        problem = make_problem(plan.model, facts)
        rounds, size = int(ROUNDS.minimum), min(plan.size, problem.model.smallest_exact)
        setup = set_up(problem, replace(planned(plan, facts, problem), asked_rounds=rounds), facts, size)
        queries = planning.queries(setup)
        return replace(
            plan,
            size=size,
            parameters={**plan.parameters, ROUNDS.name: rounds},
            clipping=planning.clipping(setup),
            queries=queries,
            steps=sum(query.count for query in queries),
        )

    def init(self, plan: MechanismPlan, facts: DeclaredFacts, rng: np.random.Generator) -> State:
        """Nothing known: the parameter at zero, and the prior's information.

        Raises:
            OtherVersion: for a plan that this version would not make.
        """
        if plan.mechanism is None:
            raise ValueError("a private method runs under a mechanism")
        problem = make_problem(plan.model, facts)
        theta = np.zeros(problem.model.dimension)
        within = bool(plan.parameters.get(WITHIN_BOUNDS.name, False))
        setup = set_up(problem, planned(plan, facts, problem), facts, plan.size, within_bounds=within)
        planning.check(plan, setup)
        return State(
            setup,
            done=0,
            scale=1.0,
            clip=1.0,
            population=nothing_known(setup),
            theta=theta,
            information=problem.prior.precision(theta),
            step=theta,
        )

    def step(self, rng: np.random.Generator, state: State, oracle: Oracle) -> State:
        """The next query and what follows from its answer; after the last one, the points."""
        schedule = state.setup.schedule
        asked = state.done - schedule.openings
        turn, second = divmod(asked, 2) if schedule.informed else (asked, 1)
        with np.errstate(all="ignore"):
            if asked < 0:
                moved = opened(rng, state, oracle)
            elif second:
                moved = headed(state, oracle, turn) if follows(state, turn) else scored(rng, state, oracle, turn)
            else:
                moved = informed(state, oracle, turn)
            moved = steadied(replace(moved, done=state.done + 1), state)
        return ended(rng, moved) if second and turn == schedule.rounds - 1 else moved

    def finish(self, state: State) -> Pseudocoreset:
        """The points, with what may be said of them."""
        return released(state)
