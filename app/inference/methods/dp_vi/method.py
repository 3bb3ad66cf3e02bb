"""DP-VI: mean-field variational inference behind a Gaussian mechanism (method id ``dp-vi``).

Jalko, Dikmen & Honkela, *Differentially Private Variational Inference for Non-conjugate Models* (UAI 2017), as in
Fig. 4 of *Bayesian Pseudocoresets* (2020): the baseline there. Each iteration draws ``theta = m + s eps`` from the
current belief and asks for the sum ``v`` of clipped scores at ``theta`` over a Poisson subsample. The log joint
density's gradient is ``v / q`` plus the prior's, which is public, and the gradients in ``m`` and ``log s`` both follow
from it (:mod:`app.inference.methods.dp_vi.mean_field`): D values are noised, not 2 D. AdaGrad climbs.

The paper then takes a Laplace approximation at the mean, which needs the table's Hessian, hence rows again. Here that
is paid for: with ``covariance`` ``fisher`` the last tenth of the planned queries, under the same noise and rate, ask
for the information matrix at the mean instead (:mod:`app.inference.methods.dp_vi.laplace_step`). With it, a climb that
is still on its way takes the part of a last Newton step that is no noise (:mod:`app.inference.methods.dp_vi.release`).
With ``mean-field`` all queries are scores, and the belief is released as it is.

The release states the posterior, and its points are fitted to that posterior. Published settings are ``iterations``
2000, ``sampling_rate`` 200 / slots, ``learning_rate`` 0.01, ``clip`` 1, 5, 10 or 50 (the best, which nobody knows
beforehand), ``average`` 0 and ``covariance`` ``mean-field``. They end far from the posterior, since AdaGrad moves no
parameter by more than 0.01 in its first step, and ever less afterwards. The defaults were chosen by measurement, once,
at epsilon 0.2 and 1 on four generated designs of 8 to 21 columns and 3,000 to 50,000 rows:

- *Rate 0.5, and the latter half of the iterates averaged*: a belief gets anywhere within a few steps, and noise
  averages out. Wide priors allow for far modes, so steps grow with them, up to threefold. (Twofold: more nats where
  columns are narrower than declared; fivefold: up to four times the nats on bounded, skewed columns. Without an end, a
  prior of scale 1,000 loses everything; in proportion to narrow priors, steps are too short.)
- *C from the belief*: 1.5 times the upper decile of the lengths of scores in a population that knows the declarations
  only, with targets from the model at ``m``, but not below half of where it starts: where the data are narrower than
  their declaration, that population's scores say too little. At the median, bias exceeds the noise a hundredfold.
- *500 iterations of about 5,000 slots*; scores as they are: a metric of ``s`` gains nothing.

Nats to the full posterior, delta = 1 / rows, epsilon 0.2 and 1: 260 and 17 (100,000 rows, 51 coefficients, prior at
390,000), 130 and 10 (census income, 10 principal components, prior at 20,500), columns declared to five and six
standard deviations; published settings with C = 5 leave thousands on both at epsilon 1.
"""

from dataclasses import replace
from typing import Any

import numpy as np

from app.errors import InvalidRequest
from app.inference.core.bounds import WITHIN_BOUNDS
from app.inference.core.facts import DeclaredFacts
from app.inference.core.knobs import Knob
from app.inference.core.plan import Mechanism, MechanismPlan, PlannedQuery, PlanRequest
from app.inference.core.problems import problem_for
from app.inference.core.query import Oracle
from app.inference.core.release import Pseudocoreset
from app.inference.methods.dp_vi.knobs import AVERAGE, CLIP, COVARIANCE, FISHER, MEAN_FIELD, MOST_FISHER, STEP, UNITS
from app.inference.methods.dp_vi.mean_field import Box, begin
from app.inference.methods.dp_vi.population import CLIP_FACTOR, CLIP_QUANTILE, mean_information, typical_clip
from app.inference.methods.dp_vi.release import close, diagnostics
from app.inference.methods.dp_vi.state import Setup, State
from app.inference.methods.dp_vi.step import BOUND, ask_information, run_iteration
from app.inference.methods.private import (
    check_parameters,
    event_of,
    iterations,
    mechanism_of,
    sampling_rate,
    shorten_plan,
    size_warnings,
    usual_rate,
)
from app.inference.methods.requests import check_size
from app.inference.private_zone.mechanisms import CLIP_FLOOR, GRID_BITS
from app.inference.private_zone.queries import ClippedScoreSum, InformationSum

_BATCH, _LEAST_RATE = 5_000, 0.02
ITERATIONS = iterations(500)
RATE = sampling_rate(_BATCH, _LEAST_RATE)

_FISHER_SHARE = 0.1
_POPULATION = 256
_CLIP_SHRINKS, _CLIP_GROWS = 2.0, 10.0  # how far C may leave where it started
_NARROWING = 7.0  # of log standard deviations, from where they start


class DpVi:
    """The registered method; stateless."""

    id = "dp-vi"
    description = "Private mean-field variational inference (Jalko et al., 2017), the baseline; states its posterior."
    private = True
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
        """T queries under one mechanism: scores, and then information matrices if the covariance is to be full.

        Raises:
            InvalidRequest: pointing at the member of the request that is at fault.
        """
        check_size(request.size)
        model = problem_for(request.model, facts).model
        check_parameters(request, self.parameters)
        usual = usual_rate(facts.slots, _BATCH, _LEAST_RATE)
        mechanism = mechanism_of(request, rate=RATE, count=ITERATIONS, usual=usual)
        covariance, warnings = _covariance(request, model.dimension)
        queries = _queries(mechanism, model.dimension, covariance)
        return MechanismPlan(
            method=self.id,
            size=request.size,
            model=request.model,
            parameters=_fill_defaults(request, covariance),
            mechanism=mechanism,
            clipping=_in_words(request.parameters.get(CLIP.name), covariance),
            grid_bits=GRID_BITS,
            queries=queries,
            steps=mechanism.iterations,
            warnings=(*size_warnings(request.size, model), *warnings),
        )

    def shorten(self, plan: MechanismPlan, facts: DeclaredFacts) -> MechanismPlan:
        """Each kind of query, at most twice."""
        return shorten_plan(plan, problem_for(plan.model, facts).model)

    def init(self, plan: MechanismPlan, facts: DeclaredFacts, rng: np.random.Generator) -> State:
        """Centred on zero, as wide as a table of the declared population would leave it."""
        if plan.mechanism is None:
            raise ValueError("a private method runs under a mechanism")
        model, design, prior = problem_for(plan.model, facts)
        population, zero = design.sample(rng, _POPULATION), np.zeros(model.dimension)
        clip = plan.parameters.get(CLIP.name) or typical_clip(model, rng, population, zero, facts.rows_per_unit)
        information = mean_information(model, rng, population)
        most = -0.5 * np.log(prior.precision(zero).diagonal())
        log_sd = -0.5 * np.log(prior.precision(zero).diagonal() + facts.slots * information)
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
            box=Box(np.clip(np.exp(most), *UNITS), log_sd - _NARROWING, most),
        )
        return State(setup, 0, begin(log_sd), clip, np.zeros((model.dimension,) * 2))

    def step(self, rng: np.random.Generator, state: State, oracle: Oracle) -> State:
        """One query; after the last, the posterior and its points."""
        climbing = state.done < state.setup.scores
        moved = run_iteration(rng, state, oracle) if climbing else ask_information(state, oracle)
        moved = replace(moved, done=moved.done + 1)
        if moved.done == state.setup.plan.steps:
            moved = close(rng, moved)
        return moved

    def finish(self, state: State) -> Pseudocoreset:
        """The posterior, and the points that stand for it.

        Raises:
            ValueError: before the last query has been answered.
        """
        points, design = state.fitted, state.setup.design
        if points is None:
            raise ValueError("a belief is released after its last query")
        y = design.decode_targets(points.y)
        return Pseudocoreset(points.u, y, points.weight, design.columns, diagnostics(state, points), state.posterior)


def _covariance(request: PlanRequest, dimension: int) -> tuple[str, tuple[str, ...]]:
    chosen = request.parameters.get(COVARIANCE.name)
    if dimension <= MOST_FISHER:
        return chosen or COVARIANCE.default, ()
    if chosen == FISHER:
        pointer = f"/parameters/{COVARIANCE.name}"
        raise InvalidRequest.at(pointer, f"a model of more than {MOST_FISHER} parameters gets a mean-field covariance")
    return MEAN_FIELD, ("the posterior of so many parameters is stated without its correlations",)


def _queries(mechanism: Mechanism, dimension: int, covariance: str) -> tuple[PlannedQuery, ...]:
    event, count = event_of(mechanism), mechanism.iterations
    last = max(1, round(_FISHER_SHARE * count)) if covariance == FISHER and count > 1 else 0
    scores = PlannedQuery(ClippedScoreSum.kind, dimension, event, count - last)
    return (scores, PlannedQuery(InformationSum.kind, dimension**2, event, last)) if last else (scores,)


def _fill_defaults(request: PlanRequest, covariance: str) -> dict[str, Any]:
    """Everything that a run depends on beside the mechanism."""
    chosen = {knob.name: request.parameters.get(knob.name, knob.default) for knob in (STEP, AVERAGE, WITHIN_BOUNDS)}
    clip = request.parameters.get(CLIP.name)
    return {**chosen, COVARIANCE.name: covariance, **({} if clip is None else {CLIP.name: clip})}


def _in_words(clip: float | None, covariance: str) -> str:
    rule = (
        f"at least {CLIP_FLOOR:g}, {CLIP_FACTOR:g} times the {CLIP_QUANTILE:g} quantile of the scores' norms in a "
        "population of the declarations and the model at the current mean"
    )
    words = (
        f"each unit's score, summed over its rows, is clipped to L2 norm C, divided by C/2^{GRID_BITS} and rounded so "
        f"that squares sum to at most 2^{2 * GRID_BITS}; C is {rule if clip is None else f'{clip:g}'}"
    )
    if covariance == MEAN_FIELD:
        return words
    return (
        f"{words}; each unit's information matrix, in units of the belief's standard deviations, is scaled to "
        f"Frobenius norm at most R, {BOUND:g} times parameters over slots, its factors rounded on a grid of "
        f"(R/2^{GRID_BITS})^(1/2) so that squares sum to at most 2^{GRID_BITS}"
    )
