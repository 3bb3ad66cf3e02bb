"""DP-PSVI: pseudocoreset variational inference behind a Gaussian mechanism (method id ``dp-psvi``).

Manousakas, Xu, Mascolo & Campbell, *Bayesian Pseudocoresets* (NeurIPS 2020), Algorithm 1 with the private sum of
Eq. 6. Each iteration draws S parameters from the Laplace approximation of the current pseudocoreset's posterior,
asks for the clipped sum ``v`` of centred potentials over a Poisson subsample, and descends on (u, w):

- ``r = v / q - sum_m w_m g(u_m)``: the residual between data and pseudocoreset at the draws (centred over them);
- ``grad_w = -(1/S) g r`` and ``grad_u_m = -(w_m / S) sum_s r_s grad_u f(u_m, theta_s)`` (Eq. 5).

Only ``v`` touches private rows; everything else is post-processing. The clip C is three times the (upper) median norm
of ``g(u_m)`` over the current pseudopoints, but at least five times ``sqrt(S D / slots)``, which is the root mean
square norm of as many units as there are slots once the posterior is theirs: where declared bounds are far wider than
the rows, points leave for places where likelihoods are flat, and a median would follow them to nothing. Points start
from the model, at design rows that know the declarations only. Classes stay as they start; the intercept coordinate
stays 1; the other coordinates move, and may leave the declared bounds unless the analyst asks that they do not. Weights
move on the log scale, so they stay positive. A target of numbers moves, too, within its bounds. With the schedule
``incremental`` points enter one by one (:mod:`app.inference.methods.dp_psvi.growth`); queries and price are the same.

Defaults were chosen by measurement, once, at epsilon 0.1 to 2 on six designs of 6 to 51 coordinates and 20,000 to
100,000 rows (bounded, heavy-tailed, with rare levels; health insurance, census income, synthetic), with 50 points. They
bring the KL to the full posterior to 0.3 to 8 % of the prior's at epsilon 1 and 1 to 7 % at 0.3:

- *Weights start at half a per cent of the slots.* A posterior that starts near the prior is drawn to the data's from
  everywhere; one that starts confident at a random place is not (KL up to four times the prior's, even without noise).
- *Three medians, not one.* Half of the rows lose their length at the median, and the bias of the score that this
  leaves exceeds the noise by far: 15 % against 0.6 % of the prior's KL on the insurance table.
- *1,000 iterations of about 2,500 slots*: fewer, larger batches are slower and leave up to four times the KL.
- *Single precision for points*, as for rows: its rounding is far below the noise, and an iteration is shorter.
- *Adam with cosine decay* on points (0.07) and log weights (0.07), longer steps where there are few of them. The
  decay averages well enough that a mean over iterates gains nothing.
"""

import math
from dataclasses import replace
from typing import Any

import numpy as np

from app.errors import InvalidRequest
from app.inference.core.bounds import WITHIN_BOUNDS
from app.inference.core.facts import DeclaredFacts
from app.inference.core.knobs import Knob, Parameter
from app.inference.core.model import Array32
from app.inference.core.plan import MechanismPlan, PlannedQuery, PlanRequest
from app.inference.core.problems import problem_for
from app.inference.core.query import Oracle
from app.inference.core.release import Pseudocoreset
from app.inference.methods.dp_psvi.arrival import step_asked
from app.inference.methods.dp_psvi.growth import INCREMENTAL, SCHEDULE
from app.inference.methods.dp_psvi.moves import grow, moved_points, moved_targets, moved_weights
from app.inference.methods.dp_psvi.release import MODE_TOLERANCE, at_the_end, diagnostics
from app.inference.methods.dp_psvi.state import LEAST_CLIP, Setup, State, points
from app.inference.methods.private import (
    check_parameters,
    event_of,
    iterations,
    mechanism_of,
    sampling_rate,
    shortened,
    size_warnings,
    usual_rate,
)
from app.inference.methods.requests import check_size
from app.inference.post.gradients import centre, psvi_gradients
from app.inference.post.laplace import laplace
from app.inference.post.optimisers import adam_init
from app.inference.private_zone.mechanisms import CLIP_FLOOR, GRID_BITS
from app.inference.private_zone.queries import PotentialSum

_BATCH, _LEAST_RATE = 2_500, 0.02
DRAWS = Parameter("posterior_draws", "integer", 2, 1000, "Posterior draws S per iteration.", default=100)
ITERATIONS = iterations(1000)
RATE = sampling_rate(_BATCH, _LEAST_RATE)

_CLIP_MEDIANS, _CLIP_LENGTHS = 3.0, 5.0
_POPULATION = 256
_STARTING_SHARE = 0.005
_MODE_DRIFT = 0.9  # of the mode's last move, which it is expected to repeat


class DpPsvi:
    """The registered method; stateless."""

    id = "dp-psvi"
    description = "Private pseudocoreset variational inference (Bayesian Pseudocoresets, 2020, Algorithm 1 and Eq. 6)."
    private = True
    parameters: tuple[Knob, ...] = (DRAWS, ITERATIONS, RATE, SCHEDULE, WITHIN_BOUNDS)

    def plan(self, request: PlanRequest, facts: DeclaredFacts) -> MechanismPlan:
        """T identical queries of S values each on Poisson subsamples of rate q.

        Raises:
            InvalidRequest: pointing at the member of the request that is at fault.
        """
        check_size(request.size)
        model = problem_for(request.model, facts).model
        check_parameters(request, self.parameters)
        draws, chosen = _choose(request)
        usual = usual_rate(facts.slots, _BATCH, _LEAST_RATE)
        mechanism = mechanism_of(request, rate=RATE, count=ITERATIONS, usual=usual)
        if chosen.get(SCHEDULE.name) == INCREMENTAL and mechanism.iterations < request.size:
            raise InvalidRequest.at(
                "/parameters/schedule",
                "incremental needs at least one iteration a point: raise iterations or lower size",
            )
        least = max(CLIP_FLOOR, _CLIP_LENGTHS * math.sqrt(draws * model.dimension / facts.slots))
        return MechanismPlan(
            method=self.id,
            size=request.size,
            model=request.model,
            parameters={DRAWS.name: draws, LEAST_CLIP: least, **chosen},
            mechanism=mechanism,
            clipping=(
                f"each unit's log-likelihoods at {draws} posterior draws, summed over its rows, are centred, clipped "
                f"to L2 norm C, divided by C/2^{GRID_BITS} and rounded so that squares sum to at most "
                f"2^{2 * GRID_BITS}; C is {_CLIP_MEDIANS:g} times the median norm over the current pseudopoints, "
                f"at least {least:.4g}"
            ),
            grid_bits=GRID_BITS,
            queries=(PlannedQuery(PotentialSum.kind, draws, event_of(mechanism), mechanism.iterations),),
            steps=mechanism.iterations,
            warnings=size_warnings(request.size, model),
        )

    def shorten(self, plan: MechanismPlan, facts: DeclaredFacts) -> MechanismPlan:
        """Two iterations, in which a second point enters where points enter one by one."""
        short = shortened(plan, problem_for(plan.model, facts).model)
        if plan.parameters.get(SCHEDULE.name) != INCREMENTAL:
            return short
        return replace(short, size=min(short.size, short.steps))

    def init(self, plan: MechanismPlan, facts: DeclaredFacts, rng: np.random.Generator) -> State:
        """Design rows that know the declarations only, targets from the model, weights near nothing."""
        if plan.mechanism is None:
            raise ValueError("a private method runs under a mechanism")
        model, design, prior = problem_for(plan.model, facts)
        begun = points(plan, 0)
        u = design.sample(rng, begun)
        y = model.starting_targets(rng, u)
        start = float(np.log(_STARTING_SHARE * facts.slots / plan.size))
        x = design.sample(rng, _POPULATION)
        population = model.fold(x, model.starting_targets(rng, x))
        rate, rows_per_unit = plan.mechanism.sampling_rate, facts.rows_per_unit
        return State(
            setup=Setup(model, design, prior, plan, rate, start, population, rows_per_unit),
            done=0,
            u=u,
            y=y,
            log_weights=np.full(begun, start),
            mode=np.zeros(model.dimension),
            drift=np.zeros(model.dimension),
            point_moments=adam_init(u.shape),
            target_moments=adam_init((begun,)),
            weight_moments=adam_init((begun,)),
            clip=CLIP_FLOOR,
            draws=np.zeros((1, model.dimension)),
            residual=np.zeros(1),
            asked=np.zeros(model.dimension),
        )

    def step(self, rng: np.random.Generator, state: State, oracle: Oracle) -> State:
        """One iteration of Algorithm 1."""
        state = grow(rng, state)
        setup, weights = state.setup, np.exp(state.log_weights)
        rows, start = setup.model.fold(state.u, state.y), state.mode + _MODE_DRIFT * state.drift
        posterior = laplace(setup.model, rows, weights, setup.prior, start, tolerance=MODE_TOLERANCE)
        draws = posterior.draw(rng, setup.plan.answer_length)
        single = [each.astype(np.float32) for each in (state.u, state.y, draws)]
        potentials, pull_back = setup.model.point_potentials(*single)
        potentials = centre(potentials)
        clip = _clip(potentials, setup.least_clip)
        residual = oracle.ask(PotentialSum(draws, clip, antithetic=len(draws) % 2 == 0)) / setup.sampling_rate
        residual -= weights.astype(potentials.dtype) @ potentials
        by_weight, by_point, by_target = psvi_gradients(pull_back, weights, potentials, residual)
        u, point_moments = moved_points(state, by_point)
        log_weights, weight_moments = moved_weights(state, weights * by_weight)
        y, target_moments = moved_targets(state, by_target)
        return State(
            setup=setup,
            done=state.done + 1,
            u=u,
            y=y,
            log_weights=log_weights,
            mode=posterior.mean,
            drift=posterior.mean - state.mode,
            point_moments=point_moments,
            target_moments=target_moments,
            weight_moments=weight_moments,
            clip=clip,
            draws=draws,
            residual=residual,
            asked=state.asked + step_asked(draws, posterior.mean, residual) if at_the_end(state) else state.asked,
        )

    def finish(self, state: State) -> Pseudocoreset:
        """The last iterate."""
        design, weights = state.setup.design, np.exp(state.log_weights)
        y = design.decode_targets(state.y)
        return Pseudocoreset(state.u, y, weights, design.columns, diagnostics(state, weights))


def _clip(potentials: Array32, least: float) -> float:
    squares = np.vecdot(potentials, potentials)
    middle = len(squares) // 2
    squares.partition(middle)
    return max(_CLIP_MEDIANS * math.sqrt(squares[middle]), least)


def _choose(request: PlanRequest) -> tuple[int, dict[str, Any]]:
    """Posterior draws, and what is chosen otherwise than it is by default."""
    draws = request.parameters.get(DRAWS.name, DRAWS.default)
    choices = ((knob, request.parameters.get(knob.name, knob.default)) for knob in (SCHEDULE, WITHIN_BOUNDS))
    return int(draws), {knob.name: value for knob, value in choices if value != knob.default}
