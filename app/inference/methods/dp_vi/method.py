"""DP-VI: mean-field variational inference behind a Gaussian mechanism (method id ``dp-vi``).

Jalko, Dikmen & Honkela, *Differentially Private Variational Inference for Non-conjugate Models* (UAI 2017), as in
Fig. 4 of *Bayesian Pseudocoresets* (2020), where it is the baseline. Each iteration draws ``theta = m + s eps`` from
the current approximation and asks the sum ``v`` of clipped scores at ``theta`` over a Poisson subsample. The gradient
of the log joint density is ``v / q`` plus the prior's, which is public. The gradients in ``m`` and ``log s`` both
follow from it (:mod:`app.inference.methods.dp_vi.mean_field`), so D values are noised, not 2 D. AdaGrad takes the
steps.

The paper then takes a Laplace approximation at the mean. That needs the table's Hessian, so it reads rows again. Here
its cost is part of the price. With ``covariance`` ``fisher``, the last tenth of the planned queries ask the information
matrix at the mean, under the same noise and rate (:mod:`app.inference.methods.dp_vi.laplace_step`). With it, a last
Newton step is taken, shrunk by the share of noise (:mod:`app.inference.methods.dp_vi.release`). With ``mean-field`` all
queries are scores, and the approximation is released unchanged.

The release states the posterior, and its points are fitted to that posterior. Published settings are ``iterations``
2000, ``sampling_rate`` 200 / slots, ``learning_rate`` 0.01, ``average`` 0 and ``covariance`` ``mean-field``; ``clip``
is 1, 5, 10 or 50, the best of which cannot be known beforehand. They end far from the posterior, because AdaGrad moves
a parameter by at most 0.01 in its first step, and by less later. The defaults were chosen by measurement, once. It was
at epsilon 0.2 and 1 on four generated designs of 8 to 21 columns and 3,000 to 50,000 rows:

- *Rate 0.5, and an average over the last half of the iterates*: the approximation reaches every mode in a few steps,
  and noise averages out. Wide priors allow for distant modes, so steps grow with them, up to threefold. (With twofold,
  there are more nats where columns are narrower than declared; with fivefold, up to four times the nats on bounded,
  skewed columns. Without a limit, a prior of scale 1,000 fails; in proportion to narrow priors, steps are too short.)
- *C from the approximation*: 1.5 times the upper decile of the norms of scores, in a population drawn from the declared
  bounds with targets from the model at ``m``. It is at least half of its first value, because scores of that population
  are too small where the data are narrower than declared. With the median, the bias is a hundred times the noise.
- *500 iterations of about 5,000 slots*; scores in their original metric: a metric of ``s`` has no benefit.

Nats to the full posterior at delta = 1 / rows, for epsilon 0.2 and 1:

- 260 and 17 on 100,000 rows with 51 coefficients (the prior: 390,000), columns declared to five standard deviations;
- 130 and 10 on census income with 10 principal components (the prior: 20,500), declared to six.

The published settings with C = 5 have thousands on both at epsilon 1.
"""

from dataclasses import replace
from typing import Any

import numpy as np

from app.errors import InvalidRequest
from app.inference.core.bounds import WITHIN_BOUNDS
from app.inference.core.capabilities import Artefact, Capability
from app.inference.core.facts import DeclaredFacts
from app.inference.core.knobs import Knob
from app.inference.core.plan import Mechanism, MechanismPlan, PlannedQuery, PlanRequest
from app.inference.core.problems import make_problem
from app.inference.core.query import Oracle
from app.inference.core.release import Pseudocoreset
from app.inference.methods.dp_vi.knobs import AVERAGE, CLIP, COVARIANCE, FISHER, MEAN_FIELD, MOST_FISHER, STEP, UNITS
from app.inference.methods.dp_vi.mean_field import Box, begin
from app.inference.methods.dp_vi.population import CLIP_FACTOR, CLIP_QUANTILE, compute_clip, compute_mean_information
from app.inference.methods.dp_vi.release import close, make_release
from app.inference.methods.dp_vi.state import Setup, State
from app.inference.methods.dp_vi.step import BOUND, ask_information, run_iteration
from app.inference.methods.private import (
    compute_usual_rate,
    make_event,
    make_iterations_parameter,
    make_plan,
    make_rate_parameter,
    read_request,
    shorten_plan,
)
from app.inference.private_zone.mechanisms import CLIP_FLOOR, GRID_BITS
from app.inference.private_zone.queries import ClippedScoreSum, InformationSum

_BATCH, _LEAST_RATE = 5_000, 0.02
ITERATIONS = make_iterations_parameter(500)
RATE = make_rate_parameter(_BATCH, _LEAST_RATE)

_FISHER_SHARE = 0.1
_POPULATION = 256
_CLIP_SHRINKS, _CLIP_GROWS = 2.0, 10.0  # largest factors by which C may fall or grow from its first value
_NARROWING = 7.0  # largest decrease of log standard deviations from their first values


class DpVi:
    """The registered method; stateless."""

    id = "dp-vi"
    description = "Private mean-field variational inference (Jalko et al., 2017). The release states its posterior."
    private = True
    needs = frozenset({Capability.SCORES, Capability.INFORMATION})
    leaves = Artefact.POINTS
    parameters: tuple[Knob, ...] = (
        ITERATIONS,
        RATE,
        CLIP,
        STEP,
        AVERAGE,
        COVARIANCE,
        WITHIN_BOUNDS,
    )

    def plan(self, request: PlanRequest, facts: DeclaredFacts) -> MechanismPlan:
        """Plan T queries under one mechanism: scores, then information matrices for a full covariance.

        Raises:
            InvalidRequest: pointing at the member of the request that is at fault.
        """
        usual = compute_usual_rate(facts.slots, _BATCH, _LEAST_RATE)
        model, mechanism = read_request(request, facts, self.parameters, rate=RATE, count=ITERATIONS, usual=usual)
        covariance, warnings = _choose_covariance(request, model.dimension)
        return make_plan(
            self.id,
            request,
            model,
            mechanism,
            parameters=_fill_defaults(request, covariance),
            clipping=_describe_clipping(request.parameters.get(CLIP.name), covariance),
            queries=_plan_queries(mechanism, model.dimension, covariance),
            warnings=warnings,
        )

    def shorten(self, plan: MechanismPlan, facts: DeclaredFacts) -> MechanismPlan:
        """Shorten ``plan`` to each kind of query at most twice."""
        return shorten_plan(plan, make_problem(plan.model, facts).model)

    def init(self, plan: MechanismPlan, facts: DeclaredFacts, rng: np.random.Generator) -> State:
        """Start at the prior's mean, with the width for the declared population."""
        if plan.mechanism is None:
            raise ValueError("a private method runs under a mechanism")
        model, design, prior = make_problem(plan.model, facts)
        population, start = design.sample(rng, _POPULATION), prior.mean
        clip = plan.parameters.get(CLIP.name) or compute_clip(model, rng, population, start, facts.rows_per_unit)
        information = compute_mean_information(model, rng, population, start)
        most = -0.5 * np.log(prior.precision(start).diagonal())
        log_sd = -0.5 * np.log(prior.precision(start).diagonal() + facts.slots * information)
        setup = Setup(
            model=model,
            design=design,
            prior=prior,
            plan=plan,
            mechanism=plan.mechanism,
            slots=facts.slots,
            rows_per_unit=facts.rows_per_unit,
            scores=sum(query.count for query in plan.queries if query.kind == ClippedScoreSum.kind),
            population=population,
            clips=(clip / _CLIP_SHRINKS, clip * _CLIP_GROWS),
            box=Box(start, np.clip(np.exp(most), *UNITS), log_sd - _NARROWING, most),
        )
        return State(setup, 0, begin(start, log_sd), clip, np.zeros((model.dimension,) * 2))

    def step(self, rng: np.random.Generator, state: State, oracle: Oracle) -> State:
        """Ask one query; after the last one, compute the posterior and its points."""
        is_score = state.done < state.setup.scores
        updated = run_iteration(rng, state, oracle) if is_score else ask_information(state, oracle)
        updated = replace(updated, done=updated.done + 1)
        if updated.done == state.setup.plan.steps:
            updated = close(rng, updated)
        return updated

    def finish(self, state: State) -> Pseudocoreset:
        """Release the posterior and the points that represent it.

        Raises:
            ValueError: before the last query has been answered.
        """
        return make_release(state)


def _choose_covariance(request: PlanRequest, dimension: int) -> tuple[str, tuple[str, ...]]:
    chosen = request.parameters.get(COVARIANCE.name)
    if dimension <= MOST_FISHER:
        return chosen or COVARIANCE.default, ()
    if chosen == FISHER:
        pointer = f"/parameters/{COVARIANCE.name}"
        raise InvalidRequest.at(pointer, f"Use mean-field for a model of more than {MOST_FISHER} parameters.")
    return MEAN_FIELD, (
        f"with more than {MOST_FISHER} parameters, the posterior is stated without correlations between parameters",
    )


def _plan_queries(mechanism: Mechanism, dimension: int, covariance: str) -> tuple[PlannedQuery, ...]:
    event, count = make_event(mechanism), mechanism.iterations
    last = max(1, round(_FISHER_SHARE * count)) if covariance == FISHER and count > 1 else 0
    scores = PlannedQuery(ClippedScoreSum.kind, dimension, event, count - last)
    return (scores, PlannedQuery(InformationSum.kind, dimension**2, event, last)) if last else (scores,)


def _fill_defaults(request: PlanRequest, covariance: str) -> dict[str, Any]:
    """Fill in the defaults of all parameters that the mechanism does not state."""
    chosen = {knob.name: request.parameters.get(knob.name, knob.default) for knob in (STEP, AVERAGE, WITHIN_BOUNDS)}
    clip = request.parameters.get(CLIP.name)
    return {**chosen, COVARIANCE.name: covariance, **({} if clip is None else {CLIP.name: clip})}


def _describe_clipping(clip: float | None, covariance: str) -> str:
    rule = (
        f"{CLIP_FACTOR:g} times the {CLIP_QUANTILE:g} quantile of the norms of scores, and at least {CLIP_FLOOR:g}. "
        "The scores belong to a population drawn from the declared bounds and from the model at the current mean"
    )
    words = (
        f"Each unit's score, summed over its rows, is clipped to L2 norm C, divided by C/2^{GRID_BITS} and rounded to "
        f"integers whose squares sum to at most 2^{2 * GRID_BITS}. C is {rule if clip is None else f'{clip:g}'}."
    )
    if covariance == MEAN_FIELD:
        return words
    return (
        f"{words} Each unit's information matrix, in units of the current standard deviations, is scaled to Frobenius "
        f"norm at most R. Its factors are rounded to a grid of (R/2^{GRID_BITS})^(1/2), to integers whose squares sum "
        f"to at most 2^{GRID_BITS}. R is {BOUND:g} times the number of parameters, divided by the slots."
    )
