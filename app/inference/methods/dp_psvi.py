"""DP-PSVI: pseudocoreset variational inference behind a Gaussian mechanism (method id ``dp-psvi``).

Manousakas, Xu, Mascolo & Campbell, *Bayesian Pseudocoresets* (NeurIPS 2020), Algorithm 1 with the private sum of
Eq. 6. Each iteration draws S parameters from the Laplace approximation of the current pseudocoreset's posterior,
asks for the clipped sum ``v`` of centred potentials over a Poisson subsample, and descends on (u, w):

- ``r = v / q - sum_m w_m g(u_m)``: the residual between data and pseudocoreset at the draws (centred over them);
- ``grad_w = -(1/S) g r`` and ``grad_u_m = -(w_m / S) sum_s r_s grad_u f(u_m, theta_s)`` (Eq. 5).

Only ``v`` touches private rows. The clip C is the median norm of ``g(u_m)`` over the current pseudopoints. Points
start from the model, at design rows that know the declarations only. Labels stay as drawn; the intercept coordinate
stays 1; the other coordinates move, and may leave the declared bounds. Weights move on the log scale.
"""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from app.errors import InvalidRequest
from app.inference.design import Design, build
from app.inference.laplace import laplace
from app.inference.mechanisms import CLIP_FLOOR, GRID_BITS, MAX_SCALE
from app.inference.models.logistic import LogisticRegression
from app.inference.optimisers import Adam, adam_init, adam_step, cosine_decay
from app.inference.protocol import (
    Array64,
    DeclaredFacts,
    Mechanism,
    MechanismPlan,
    Model,
    Oracle,
    Parameter,
    PlanRequest,
    Pseudocoreset,
)
from app.privacy.events import GaussianEvent, PoissonSampledEvent, encode

MAX_SIZE = 10_000
MAX_ITERATIONS = 100_000
DRAWS = Parameter("posterior_draws", "integer", 2, 1000, "Posterior draws S per iteration.", default=100)
ITERATIONS = Parameter("iterations", "integer", 1, MAX_ITERATIONS, "Iterations T; the default is 200.")
RATE = Parameter(
    "sampling_rate",
    "number",
    0,
    1,
    "Poisson sampling rate q; the default expects 20,000 slots a batch and is never below 0.02.",
    exclusive_minimum=True,
)
NOISE = Parameter("noise_multiplier", "number", 0.05, 1e6, "Noise standard deviation over the clip.")

_DEFAULT_ITERATIONS = 200
_DEFAULT_BATCH = 20_000
_LEAST_RATE = 0.02
_POINT_STEP = 0.05
_WEIGHT_STEP = 0.1
_MAX_COORDINATE = 100.0
_MAX_LOG_WEIGHT_MOVE = 15.0


@dataclass(frozen=True, slots=True)
class Setup:
    """What stays fixed through a run."""

    model: Model
    design: Design
    plan: MechanismPlan
    sampling_rate: float
    slots: int


@dataclass(frozen=True, slots=True)
class State:
    """A pseudocoreset on its way: points ``u`` (M, p), targets ``y`` (M,), log weights, and what optimises them."""

    setup: Setup
    done: int
    u: Array64
    y: Array64
    log_weights: Array64
    mode: Array64  # of the current posterior, for the next warm start
    point_moments: Adam
    weight_moments: Adam
    mean_u: Array64
    mean_log_weights: Array64
    averaged: int
    clip: float


class DpPsvi:
    """The registered method; stateless."""

    id = "dp-psvi"
    description = "Private pseudocoreset variational inference (Bayesian Pseudocoresets, 2020, Algorithm 1 and Eq. 6)."
    private = True
    parameters: tuple[Parameter, ...] = (DRAWS, ITERATIONS, RATE)

    def plan(self, request: PlanRequest, facts: DeclaredFacts) -> MechanismPlan:
        """T identical questions of S values each on Poisson subsamples of rate q.

        Raises:
            InvalidRequest: pointing at the member of the request that is at fault.
        """
        if facts.unit.get("kind") != "row":
            raise InvalidRequest.at("/method", "this method does not support privacy units of more than one row yet")
        if isinstance(request.size, bool) or not 1 <= request.size <= MAX_SIZE:
            raise InvalidRequest.at("/size", f"must be at least 1 and at most {MAX_SIZE}")
        design = build(request.model, facts, LogisticRegression())
        draws = _check_parameters(request)
        mechanism = _mechanism(request, facts)
        event = GaussianEvent(mechanism.noise_multiplier)
        sampled = event if mechanism.sampling_rate == 1 else PoissonSampledEvent(mechanism.sampling_rate, event)
        return MechanismPlan(
            method=self.id,
            size=request.size,
            model=request.model,
            parameters={"posterior_draws": draws},
            mechanism=mechanism,
            answer_length=draws,
            clipping=(
                f"each unit's log-likelihoods at {draws} posterior draws are centred, clipped to L2 norm C, divided by "
                f"C/2^{GRID_BITS} and rounded so that squares sum to at most 2^{2 * GRID_BITS}; C is the median norm "
                f"over the current pseudopoints, at least {CLIP_FLOOR:g}"
            ),
            grid_bits=GRID_BITS,
            events=encode([(sampled, mechanism.iterations)]),
            steps=mechanism.iterations,
            warnings=_warnings(request.size, design),
        )

    def init(self, plan: MechanismPlan, facts: DeclaredFacts, rng: np.random.Generator) -> State:
        """Points from the model: design rows from the declarations, ``theta`` from the prior, labels from both."""
        if plan.mechanism is None:
            raise ValueError("a private method runs under a mechanism")
        model = LogisticRegression()
        design = build(plan.model, facts, model)
        u = design.sample(rng, plan.size)
        theta = model.sample_prior(rng, 1, design.width, plan.model.prior_scale)[0]
        log_weights = np.full(plan.size, np.log(facts.slots / plan.size))
        return State(
            setup=Setup(model, design, plan, plan.mechanism.sampling_rate, facts.slots),
            done=0,
            u=u,
            y=model.sample_targets(rng, u, theta),
            log_weights=log_weights,
            mode=np.zeros(design.width),
            point_moments=adam_init(u.shape),
            weight_moments=adam_init(log_weights.shape),
            mean_u=np.zeros_like(u),
            mean_log_weights=np.zeros_like(log_weights),
            averaged=0,
            clip=CLIP_FLOOR,
        )

    def step(self, rng: np.random.Generator, state: State, oracle: Oracle) -> tuple[State, dict[str, float]]:
        """One iteration of Algorithm 1."""
        setup, weights = state.setup, np.exp(state.log_weights)
        rows = setup.model.fold(state.u, state.y)
        posterior = laplace(setup.model, rows, weights, setup.plan.model.prior_scale, state.mode, tolerance=1e-4)
        draws = posterior.draw(rng, setup.plan.answer_length)
        potentials = setup.model.log_likelihood(rows, draws)
        potentials -= potentials.mean(axis=1, keepdims=True)
        norms = np.sqrt(np.vecdot(potentials, potentials))
        clip = max(float(np.median(norms)), CLIP_FLOOR)
        answer = oracle.clipped_potential_sum(draws, clip) / setup.sampling_rate
        residual = answer - weights @ potentials
        residual -= residual.mean()
        residual /= len(residual)
        weight_gradient = -weights * (potentials @ residual)
        row_gradient = -weights[:, None] * setup.model.row_gradient(rows, draws, residual)
        point_gradient = setup.model.fold(row_gradient, state.y)
        return _descend(state, posterior.mean, weight_gradient, point_gradient, clip), {"clip": clip}

    def finish(self, state: State) -> Pseudocoreset:
        """The average of the last iterates."""
        weight = np.exp(state.mean_log_weights)
        return Pseudocoreset(
            u=state.mean_u,
            y=state.y,
            weight=weight,
            design=state.setup.design.columns,
            diagnostics={
                "iterations": state.done,
                "total_weight": float(weight.sum()),
                "effective_size": float(weight.sum() ** 2 / np.square(weight).sum()),
                "final_clip": state.clip,
            },
        )


def _descend(state: State, mode: Array64, weight_gradient: Array64, point_gradient: Array64, clip: float) -> State:
    """One Adam step with a cosine-decayed rate, kept in a finite box, and the average over the last half."""
    setup = state.setup
    decay = cosine_decay(state.done, setup.plan.steps)
    point_gradient[:, -1] = 0
    points, point_move = adam_step(state.point_moments, point_gradient)
    logs, weight_move = adam_step(state.weight_moments, weight_gradient)
    u = np.clip(state.u - _POINT_STEP * decay * point_move, -_MAX_COORDINATE, _MAX_COORDINATE)
    center = np.log(setup.slots / setup.plan.size)
    log_weights = np.clip(
        state.log_weights - _WEIGHT_STEP * decay * weight_move,
        center - _MAX_LOG_WEIGHT_MOVE,
        center + _MAX_LOG_WEIGHT_MOVE,
    )
    averaged = state.averaged + (2 * (state.done + 1) > setup.plan.steps)
    share = 1 / averaged if averaged else 0.0
    return replace(
        state,
        done=state.done + 1,
        u=u,
        log_weights=log_weights,
        mode=mode,
        point_moments=points,
        weight_moments=logs,
        mean_u=state.mean_u + share * (u - state.mean_u),
        mean_log_weights=state.mean_log_weights + share * (log_weights - state.mean_log_weights),
        averaged=averaged,
        clip=clip,
    )


def _check_parameters(request: PlanRequest) -> int:
    known = {parameter.name: parameter for parameter in DpPsvi.parameters}
    for name, value in request.parameters.items():
        if name not in known:
            raise InvalidRequest.at("/parameters", "unknown parameter; GET /v1/methods lists what this method takes")
        if request.mechanism is not None and name != DRAWS.name:
            raise InvalidRequest.at(f"/parameters/{name}", "belongs into the mechanism under /privacy")
        known[name].check(value, f"/parameters/{name}")
    draws = request.parameters.get(DRAWS.name, DRAWS.default)
    return int(draws)


def _mechanism(request: PlanRequest, facts: DeclaredFacts) -> Mechanism:
    if request.mechanism is not None:
        NOISE.check(request.mechanism.noise_multiplier, "/privacy/noise_multiplier")
        RATE.check(request.mechanism.sampling_rate, "/privacy/sampling_rate")
        ITERATIONS.check(request.mechanism.iterations, "/privacy/iterations")
        return request.mechanism
    if request.noise_multiplier is None or not 0 < request.noise_multiplier <= MAX_SCALE:
        raise InvalidRequest.at("/privacy", "name a target epsilon within reach, or a mechanism")
    parameters: dict[str, Any] = {
        RATE.name: min(1.0, max(_LEAST_RATE, _DEFAULT_BATCH / facts.slots)),
        ITERATIONS.name: _DEFAULT_ITERATIONS,
        **request.parameters,
    }
    return Mechanism(request.noise_multiplier, float(parameters[RATE.name]), parameters[ITERATIONS.name])


def _warnings(size: int, design: Design) -> tuple[str, ...]:
    if size > design.width:
        return ()
    return (f"a pseudocoreset of fewer than {design.width + 1} points cannot represent this model's posterior",)
