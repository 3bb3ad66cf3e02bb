"""DP-PSVI: pseudocoreset variational inference behind a Gaussian mechanism (method id ``dp-psvi``).

Manousakas, Xu, Mascolo & Campbell, *Bayesian Pseudocoresets* (NeurIPS 2020), Algorithm 1 with the private sum of
Eq. 6. Each iteration draws S parameters from the Laplace approximation of the current pseudocoreset's posterior. It
asks the clipped sum ``v`` of centred potentials over a Poisson subsample, and descends on (u, w):

- ``r = v / q - sum_m w_m g(u_m)``: the residual between data and pseudocoreset at the draws (centred over them);
- ``grad_w = -(1/S) g r`` and ``grad_u_m = -(w_m / S) sum_s r_s grad_u f(u_m, theta_s)`` (Eq. 5).

Only ``v`` depends on private rows; all else is post-processing. The clipping norm C is three times the (upper) median
norm of ``g(u_m)`` over the current pseudopoints, but at least five times ``sqrt(S D / slots)``. The latter is the root
mean square norm of as many units as slots at their posterior. It is needed where declared bounds are far wider than
the rows: points then move to places where likelihoods are flat, and the median norm would fall to zero.

Points start at design rows drawn from the declared bounds. Classes stay fixed, and the intercept coordinate stays 1.
The other coordinates move; they may leave the declared bounds unless the request forbids it. Weights move on the log
scale, so they stay positive. A numeric target moves within its bounds. With the schedule ``incremental``, points are
added one by one (:mod:`app.inference.methods.dp_psvi.incremental`); queries and price are the same.

With ``beta``, all potentials belong to a beta-likelihood (:mod:`app.inference.methods.dp_psvi.robust`). Their range is
``1 / beta``, so C is at most ``sqrt(S) / (2 beta)`` for each row of a unit. At this C nothing is clipped.

Defaults were chosen by measurement, once, with 50 points at epsilon 0.1 to 2. There were six designs of 6 to 51
coordinates and 20,000 to 100,000 rows: bounded, heavy-tailed, with rare levels; health insurance, census income,
synthetic. The KL to the full posterior falls to 0.3 to 8 % of the prior's at epsilon 1, and to 1 to 7 % at 0.3:

- *Weights start at 0.5 % of the slots.* Descent from a start near the prior reaches the data's posterior. From a
  precise posterior at a random place it does not (KL up to four times the prior's, even without noise).
- *Three medians, not one.* At one median, half of the rows are clipped. The resulting bias of the score is much larger
  than the noise: 15 % against 0.6 % of the prior's KL on the insurance table.
- *1,000 iterations of about 2,500 slots*: fewer, larger batches are slower and end with up to four times the KL.
- *Single precision for points*, as for rows: its rounding is far below the noise, and an iteration is faster.
- *Adam with cosine decay* on points (0.07) and log weights (0.07), with larger steps if there are few iterations. With
  this decay, averaging iterates has no benefit.

The paper has other settings: weights start at the slots over M, C is one median norm, and the lengths of steps are
``learning_rate / t``. They are used with ``steps`` ``published`` or ``gradient``
(:mod:`app.inference.methods.steps`). The unit of points is then half of a column's range, and that of weights is 1.
"""

import math
from dataclasses import replace
from typing import Any

import numpy as np

from app.errors import InvalidRequest
from app.inference.core.bounds import WITHIN_BOUNDS
from app.inference.core.capabilities import Artefact, Capability
from app.inference.core.facts import DeclaredFacts
from app.inference.core.knobs import Knob, Parameter
from app.inference.core.model import Array32
from app.inference.core.plan import MechanismPlan, PlannedQuery, PlanRequest
from app.inference.core.problems import make_problem
from app.inference.core.query import Oracle
from app.inference.core.release import Pseudocoreset
from app.inference.methods.dp_psvi.convergence import estimate_newton_step
from app.inference.methods.dp_psvi.incremental import INCREMENTAL, SCHEDULE
from app.inference.methods.dp_psvi.release import MODE_TOLERANCE, is_in_tail, make_release
from app.inference.methods.dp_psvi.robust import bound_norm, describe_clipping, find_kind, make_query
from app.inference.methods.dp_psvi.state import LEAST_CLIP, Setup, State, count_present_points
from app.inference.methods.dp_psvi.updates import grow, update_points, update_targets, update_weights
from app.inference.methods.private import (
    compute_usual_rate,
    make_event,
    make_iterations_parameter,
    make_plan,
    make_rate_parameter,
    read_request,
    shorten_plan,
)
from app.inference.methods.robustness import BETA, decorate, read_beta
from app.inference.methods.steps import COSINE, STEPS, Schedule
from app.inference.post.gradients import centre, compute_psvi_gradients
from app.inference.post.laplace import fit_laplace
from app.inference.post.optimisers import start_adam
from app.inference.private_zone.mechanisms import CLIP_FLOOR

_BATCH, _LEAST_RATE = 2_500, 0.02
DRAWS = Parameter("posterior_draws", "integer", 2, 1000, "Number of posterior draws in each iteration.", default=100)
ITERATIONS = make_iterations_parameter(1000)
RATE = make_rate_parameter(_BATCH, _LEAST_RATE)

LEARNING_RATE = Parameter(
    "learning_rate",
    "number",
    0,
    100,
    "Length of the first published step. Its unit is half of a column's range, and 1 for weights. Not for steps that "
    "decay by a cosine.",
    default=1.0,
    exclusive_minimum=True,
)

_CLIP_MEDIANS, _PUBLISHED_MEDIANS, _CLIP_LENGTHS = 3.0, 1.0, 5.0
_POPULATION = 256
_STARTING_SHARE = 0.005
_MODE_DRIFT = 0.9  # share of the mode's last move that is added to the next warm start


_CHOICES = (SCHEDULE, STEPS, LEARNING_RATE, WITHIN_BOUNDS, BETA)


class DpPsvi:
    """The registered method; stateless."""

    id = "dp-psvi"
    description = (
        "Private pseudocoresets by noisy gradient descent on points and weights (PSVI; Bayesian Pseudocoresets, 2020)."
    )
    private = True
    needs = frozenset({Capability.POTENTIALS})
    leaves = Artefact.POINTS
    parameters: tuple[Knob, ...] = (DRAWS, ITERATIONS, RATE, SCHEDULE, STEPS, LEARNING_RATE, WITHIN_BOUNDS, BETA)

    def plan(self, request: PlanRequest, facts: DeclaredFacts) -> MechanismPlan:
        """Plan T identical queries of S values each, on Poisson subsamples of rate q.

        Raises:
            InvalidRequest: pointing at the member of the request that is at fault.
        """
        usual = compute_usual_rate(facts.slots, _BATCH, _LEAST_RATE)
        model, mechanism = read_request(request, facts, self.parameters, rate=RATE, count=ITERATIONS, usual=usual)
        draws, chosen = _choose(request)
        if chosen.get(SCHEDULE.name) == INCREMENTAL and mechanism.iterations < request.size:
            raise InvalidRequest.at(
                "/parameters/schedule",
                "The incremental schedule needs an iteration for each point; use more iterations or a smaller size.",
            )
        if LEARNING_RATE.name in request.parameters and STEPS.name not in chosen:
            raise InvalidRequest.at(
                f"/parameters/{LEARNING_RATE.name}", "Steps that decay by a cosine have no learning rate; leave it out."
            )
        medians, least = _PUBLISHED_MEDIANS, CLIP_FLOOR
        if STEPS.name not in chosen:
            medians = _CLIP_MEDIANS
            least = max(CLIP_FLOOR, _CLIP_LENGTHS * math.sqrt(draws * model.dimension / facts.slots))
        beta = read_beta(request.parameters, model)
        return make_plan(
            self.id,
            request,
            model,
            mechanism,
            parameters={DRAWS.name: draws, LEAST_CLIP: least, **chosen},
            clipping=describe_clipping(
                draws,
                medians,
                least,
                beta,
                bound_norm(decorate(model, beta), draws, facts.rows_per_unit),
            ),
            queries=(PlannedQuery(find_kind(beta), draws, make_event(mechanism), mechanism.iterations),),
        )

    def shorten(self, plan: MechanismPlan, facts: DeclaredFacts) -> MechanismPlan:
        """Shorten to two iterations; with the incremental schedule, each has one more point."""
        short = shorten_plan(plan, make_problem(plan.model, facts).model)
        if plan.parameters.get(SCHEDULE.name) != INCREMENTAL:
            return short
        return replace(short, size=min(short.size, short.steps))

    def init(self, plan: MechanismPlan, facts: DeclaredFacts, rng: np.random.Generator) -> State:
        """Start with design rows drawn from the declared bounds, and small weights."""
        if plan.mechanism is None:
            raise ValueError("a private method runs under a mechanism")
        model, design, prior = make_problem(plan.model, facts)
        beta = read_beta(plan.parameters, model)
        plain, model = model, decorate(model, beta)
        count = count_present_points(plan, 0)
        u = design.sample(rng, count)
        y = model.starting_targets(rng, u)
        steps = read_steps(plan)
        start = (1.0 if steps.is_published else _STARTING_SHARE) * facts.slots / plan.size
        x = design.sample(rng, _POPULATION)
        population = model.fold(x, model.starting_targets(rng, x))
        rate, rows_per_unit = plan.mechanism.sampling_rate, facts.rows_per_unit
        return State(
            setup=Setup(
                model,
                design,
                prior,
                plan,
                rate,
                start,
                steps,
                population,
                rows_per_unit,
                plain=plain,
                beta=beta,
            ),
            done=0,
            u=u,
            y=y,
            weights=np.full(count, start),
            mode=prior.mean,
            drift=np.zeros(model.dimension),
            point_moments=start_adam(u.shape),
            target_moments=start_adam((count,)),
            weight_moments=start_adam((count,)),
            clip=CLIP_FLOOR,
            draws=np.zeros((1, model.dimension)),
            residual=np.zeros(1),
            newton_steps=np.zeros(model.dimension),
        )

    def step(self, rng: np.random.Generator, state: State, oracle: Oracle) -> State:
        """Carry out one iteration of Algorithm 1."""
        state = grow(rng, state)
        setup, weights = state.setup, state.weights
        model = setup.model
        rows, start = model.fold(state.u, state.y), state.mode + _MODE_DRIFT * state.drift
        posterior = fit_laplace(model, rows, weights, setup.prior, start, tolerance=MODE_TOLERANCE)
        draws = posterior.draw(rng, setup.plan.answer_length)
        single = [each.astype(np.float32) for each in (state.u, state.y, draws)]
        potentials, pull_back = model.point_potentials(*single)
        potentials = centre(potentials)
        medians = _PUBLISHED_MEDIANS if setup.steps.is_published else _CLIP_MEDIANS
        longest = bound_norm(model, len(draws), setup.rows_per_unit)
        clip = min(_choose_clip(potentials, medians, setup.least_clip), longest)
        residual = oracle.ask(make_query(draws, clip, setup.beta)) / setup.sampling_rate
        residual -= weights.astype(potentials.dtype) @ potentials
        by_weight, by_point, by_target = compute_psvi_gradients(pull_back, weights, potentials, residual)
        u, point_moments = update_points(state, by_point)
        weights, weight_moments = update_weights(state, by_weight)
        y, target_moments = update_targets(state, by_target)
        newton_steps = state.newton_steps
        if is_in_tail(state):
            newton_steps = newton_steps + estimate_newton_step(draws, posterior.mean, residual)
        return State(
            setup=setup,
            done=state.done + 1,
            u=u,
            y=y,
            weights=weights,
            mode=posterior.mean,
            drift=posterior.mean - state.mode,
            point_moments=point_moments,
            target_moments=target_moments,
            weight_moments=weight_moments,
            clip=clip,
            draws=draws,
            residual=residual,
            newton_steps=newton_steps,
        )

    def finish(self, state: State) -> Pseudocoreset:
        """Release the last iterate."""
        return make_release(state)


def _choose_clip(potentials: Array32, medians: float, least: float) -> float:
    squares = np.vecdot(potentials, potentials)
    middle = len(squares) // 2
    squares.partition(middle)
    return max(medians * math.sqrt(squares[middle]), least)


def _choose(request: PlanRequest) -> tuple[int, dict[str, Any]]:
    """Read the number of posterior draws, and the parameters that differ from their defaults."""
    draws = request.parameters.get(DRAWS.name, DRAWS.default)
    choices = ((knob, request.parameters.get(knob.name, knob.default)) for knob in _CHOICES)
    return int(draws), {knob.name: value for knob, value in choices if value != knob.default}


def read_steps(plan: MechanismPlan) -> Schedule:
    """Read the schedule of a plan; plans of earlier versions decay by a cosine."""
    parameters = plan.parameters
    rate = float(parameters.get(LEARNING_RATE.name, LEARNING_RATE.default))
    return Schedule(parameters.get(STEPS.name, COSINE), rate, plan.steps)
