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
``incremental`` points enter one by one (:mod:`app.inference.growth`); questions and price are the same.

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
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from app.errors import InvalidRequest
from app.inference.arrival import LEAST_KEPT, arrived, kept, noise_in_sds, noise_nats, step_asked, tellable
from app.inference.bounds import WITHIN_BOUNDS, project
from app.inference.design import Design
from app.inference.diagnostics import stated, stated_by_parameter
from app.inference.gradients import centred, psvi_gradients
from app.inference.growth import INCREMENTAL, JOINT, SCHEDULE, newcomer, points_in_play
from app.inference.laplace import laplace
from app.inference.mechanisms import CLIP_FLOOR, GRID_BITS
from app.inference.methods.private import (
    check_parameters,
    check_size,
    event_of,
    iterations,
    mechanism_of,
    sampling_rate,
    size_warnings,
    usual_rate,
)
from app.inference.optimisers import Adam, adam_init, adam_step, adam_widen, cosine_decay
from app.inference.priors import Prior
from app.inference.problems import model_for
from app.inference.protocol import (
    Array32,
    Array64,
    Choice,
    DeclaredFacts,
    MechanismPlan,
    Model,
    Oracle,
    Parameter,
    PlannedQuery,
    PlanRequest,
    Pseudocoreset,
    Switch,
)
from app.inference.questions import PotentialSum

_BATCH, _LEAST_RATE = 2_500, 0.02
DRAWS = Parameter("posterior_draws", "integer", 2, 1000, "Posterior draws S per iteration.", default=100)
ITERATIONS = iterations(1000)
RATE = sampling_rate(_BATCH, _LEAST_RATE)

_CLIP_MEDIANS, _CLIP_LENGTHS = 3.0, 5.0
_LEAST_CLIP = "least_clip"
_POPULATION = 256
_STARTING_SHARE = 0.005
_STEP = 0.07
_POINT_PATH = 7.0
_WEIGHT_PATH = 10.0
_MODE_TOLERANCE = 4.0  # of the squared Newton decrement *before* the last step, which squares it again
_MODE_DRIFT = 0.9  # of the mode's last move, which it is expected to repeat
_END = 0.3  # of the run: what residuals ask for there says whether it has arrived
_MAX_COORDINATE = 100.0
_MAX_LOG_MOVE = 15.0


@dataclass(frozen=True, slots=True)
class Setup:
    """What stays fixed through a run."""

    model: Model
    design: Design
    prior: Prior
    plan: MechanismPlan
    sampling_rate: float
    starting_log_weight: float
    population: Array64  # folded rows (n, row_width) that know the declarations only
    rows_per_unit: int

    @property
    def least_clip(self) -> float:
        """As the plan states it; plans of earlier versions know the public floor only."""
        return float(self.plan.parameters.get(_LEAST_CLIP, CLIP_FLOOR))


@dataclass(frozen=True, slots=True)
class State:
    """A pseudocoreset on its way: points ``u`` (M, p), targets ``y`` (M,), log weights, and what optimises them."""

    setup: Setup
    done: int
    u: Array64
    y: Array64
    log_weights: Array64
    mode: Array64  # of the current posterior, and its last move: for the next warm start
    drift: Array64
    point_moments: Adam
    target_moments: Adam
    weight_moments: Adam
    clip: float
    draws: Array64  # of the last iteration, (S, D), and what the data's potentials at them exceeded the points' by
    residual: Array64
    asked: Array64  # sum (D,) over the end of the run of the steps that residuals ask for


class DpPsvi:
    """The registered method; stateless."""

    id = "dp-psvi"
    description = "Private pseudocoreset variational inference (Bayesian Pseudocoresets, 2020, Algorithm 1 and Eq. 6)."
    private = True
    parameters: tuple[Parameter | Choice | Switch, ...] = (DRAWS, ITERATIONS, RATE, SCHEDULE, WITHIN_BOUNDS)

    def plan(self, request: PlanRequest, facts: DeclaredFacts) -> MechanismPlan:
        """T identical questions of S values each on Poisson subsamples of rate q.

        Raises:
            InvalidRequest: pointing at the member of the request that is at fault.
        """
        check_size(request.size)
        model = model_for(request.model, facts).model
        check_parameters(request, self.parameters)
        draws, chosen = _chosen(request)
        usual = usual_rate(facts.slots, _BATCH, _LEAST_RATE)
        mechanism = mechanism_of(request, rate=RATE, count=ITERATIONS, usual=usual)
        if chosen.get(SCHEDULE.name) == INCREMENTAL and mechanism.iterations < request.size:
            raise InvalidRequest.at("/parameters/schedule", "there is at least one iteration for each point")
        least = max(CLIP_FLOOR, _CLIP_LENGTHS * math.sqrt(draws * model.dimension / facts.slots))
        return MechanismPlan(
            method=self.id,
            size=request.size,
            model=request.model,
            parameters={DRAWS.name: draws, _LEAST_CLIP: least, **chosen},
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

    def init(self, plan: MechanismPlan, facts: DeclaredFacts, rng: np.random.Generator) -> State:
        """Design rows that know the declarations only, targets from the model, weights near nothing."""
        if plan.mechanism is None:
            raise ValueError("a private method runs under a mechanism")
        model, design, prior = model_for(plan.model, facts)
        begun = _points(plan, 0)
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

    def step(self, rng: np.random.Generator, state: State, oracle: Oracle) -> tuple[State, dict[str, float]]:
        """One iteration of Algorithm 1."""
        state = _grown(rng, state)
        setup, weights = state.setup, np.exp(state.log_weights)
        rows, start = setup.model.fold(state.u, state.y), state.mode + _MODE_DRIFT * state.drift
        posterior = laplace(setup.model, rows, weights, setup.prior, start, tolerance=_MODE_TOLERANCE)
        draws = posterior.draw(rng, setup.plan.answer_length)
        single = [each.astype(np.float32) for each in (state.u, state.y, draws)]
        potentials, pull_back = setup.model.point_potentials(*single)
        potentials = centred(potentials)
        clip = _clip(potentials, setup.least_clip)
        residual = oracle.ask(PotentialSum(draws, clip, antithetic=len(draws) % 2 == 0)) / setup.sampling_rate
        residual -= weights @ potentials
        by_weight, by_point, by_target = psvi_gradients(pull_back, weights, potentials, residual)
        u, point_moments = _moved_points(state, by_point)
        log_weights, weight_moments = _moved_weights(state, weights * by_weight)
        y, target_moments = _moved_targets(state, by_target)
        moved = State(
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
            asked=state.asked + step_asked(draws, posterior.mean, residual) if _at_the_end(state) else state.asked,
        )
        return moved, {"clip": clip}

    def finish(self, state: State) -> Pseudocoreset:
        """The last iterate."""
        design, weights = state.setup.design, np.exp(state.log_weights)
        y = None if design.target is None else state.y
        return Pseudocoreset(state.u, y, weights, design.columns, _diagnostics(state, weights))


def _clip(potentials: Array32, least: float) -> float:
    squares = np.vecdot(potentials, potentials)
    middle = len(squares) // 2
    squares.partition(middle)
    return max(_CLIP_MEDIANS * math.sqrt(squares[middle]), least)


def _tail(plan: MechanismPlan) -> int:
    return math.ceil(_END * plan.steps)


def _at_the_end(state: State) -> bool:
    return state.done >= state.setup.plan.steps - _tail(state.setup.plan)


def _diagnostics(state: State, weights: Array64) -> dict[str, Any]:
    setup, plan, mechanism = state.setup, state.setup.plan, state.setup.plan.mechanism
    assert mechanism is not None
    rows = setup.model.fold(state.u, state.y)
    found = laplace(setup.model, rows, weights, setup.prior, state.mode, tolerance=_MODE_TOLERANCE)
    information, tail = found.factor @ found.factor.T, _tail(plan)
    step, noise = state.asked / tail, mechanism.noise_multiplier * state.clip / mechanism.sampling_rate
    nats = noise_nats(step, information, noise, plan.answer_length, tail)
    learned = 0.5 * float(found.mean @ information @ found.mean)
    off = noise_in_sds(step, found.factor, noise, plan.answer_length, tail)
    told = kept(setup.model, setup.population, state.draws, state.clip, setup.rows_per_unit) >= LEAST_KEPT
    return {
        "trusted": told and arrived(nats, learned) and tellable(setup.model, setup.design, state.u, state.mode),
        "noise_kl": stated(nats),
        "noise_in_posterior_sds": stated_by_parameter(setup.model, setup.design, off),
        "represents_every_direction": plan.size >= setup.model.smallest_exact,
        "iterations": state.done,
        "total_weight": float(weights.sum()),
        "effective_size": float(weights.sum() ** 2 / np.square(weights).sum()),
        "final_clip": state.clip,
    }


def _points(plan: MechanismPlan, done: int) -> int:
    return points_in_play(plan.parameters.get(SCHEDULE.name, JOINT), plan.size, plan.steps, done)


def _settled(plan: MechanismPlan) -> slice:
    """The points that keep their place while a newcomer moves."""
    return slice(0, -1 if plan.parameters.get(SCHEDULE.name, JOINT) == INCREMENTAL else 0)


def _grown(rng: np.random.Generator, state: State) -> State:
    """The state with the point that enters now, if any does; what moves points starts anew."""
    setup = state.setup
    if _points(setup.plan, state.done) == len(state.u):
        return state
    u, y = newcomer(rng, setup.model, setup.design, state.draws, state.residual)
    u, y = np.concatenate([state.u, u]), np.concatenate([state.y, y])
    return replace(
        state,
        u=u,
        y=y,
        log_weights=np.append(state.log_weights, setup.starting_log_weight),
        point_moments=adam_init(u.shape),
        target_moments=adam_init(y.shape),
        weight_moments=adam_widen(state.weight_moments),
    )


def _rate(state: State, path: float) -> float:
    """How far a coordinate moves now: cosine-decayed, and further at a time where there are few steps."""
    steps = state.setup.plan.steps
    return cosine_decay(state.done, steps) * max(_STEP, path / steps)


def _moved_points(state: State, gradient: Array64) -> tuple[Array64, Adam]:
    """One Adam step of the points, kept in a finite box whatever the answer was; written over ``gradient``."""
    gradient[_settled(state.setup.plan)] = 0
    if state.setup.design.intercept:
        gradient[:, -1] = 0
    moments, move = adam_step(state.point_moments, gradient, _rate(state, _POINT_PATH))
    return _confined(state.setup, np.subtract(state.u, move, out=move)), moments


def _moved_weights(state: State, gradient: Array64) -> tuple[Array64, Adam]:
    """One Adam step of the log weights, kept near their start; written over ``gradient``."""
    start = state.setup.starting_log_weight
    moments, move = adam_step(state.weight_moments, gradient, _rate(state, _WEIGHT_PATH))
    log_weights = np.maximum(state.log_weights - move, start - _MAX_LOG_MOVE)
    return np.minimum(log_weights, start + _MAX_LOG_MOVE, out=log_weights), moments


def _confined(setup: Setup, u: Array64) -> Array64:
    """Points in a finite box, or within the declared bounds where the plan says so; may work in ``u``."""
    if setup.plan.parameters.get(WITHIN_BOUNDS.name, False):
        return project(setup.design, u)
    return np.clip(u, -_MAX_COORDINATE, _MAX_COORDINATE, out=u)


def _moved_targets(state: State, gradient: Array64 | None) -> tuple[Array64, Adam]:
    """One Adam step of targets that are numbers, in the model's steps and within the declared bounds; others stay."""
    if gradient is None:
        return state.y, state.target_moments
    setup, target = state.setup, state.setup.design.target
    step = setup.model.target_step(state.y)
    gradient[_settled(setup.plan)] = 0
    moments, move = adam_step(state.target_moments, step * gradient, _rate(state, _POINT_PATH))
    y = state.y - step * move
    if target is not None:
        y = np.clip(y, target.lower, target.upper)
    return y, moments


def _chosen(request: PlanRequest) -> tuple[int, dict[str, Any]]:
    """Posterior draws, and what is chosen otherwise than it is by default."""
    draws = request.parameters.get(DRAWS.name, DRAWS.default)
    choices = ((knob, request.parameters.get(knob.name, knob.default)) for knob in (SCHEDULE, WITHIN_BOUNDS))
    return int(draws), {knob.name: value for knob, value in choices if value != knob.default}
