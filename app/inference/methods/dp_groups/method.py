"""Private weights of declared groups (method id ``dp-groups``).

Beta-cores for groups choose groups of rows (thesis, section 5.2.2.2). The private form needs one query. At S draws
``theta_s`` of a belief that was bought before, it asks the sums ``A_gs`` of centred potentials over the rows of
group g.

*Sensitivity.* A row adds one vector of S values to the block of its group. All blocks of a unit are clipped together to
norm C. So replacing a unit by an absent one moves the answer by at most C, for any number of groups. This holds for a
person with rows in several groups, too.

*Price.* One Gaussian query of all slots with noise ``sigma C``. Weights and all other figures follow from the answer
(:mod:`app.inference.methods.dp_groups.weighing`).

*Clipping norm.* Rows are drawn from the declared bounds, with targets of the model at the belief's mean. C is twice the
median norm of their centred potentials, but at least ``2 sqrt(S D / slots)``. If the belief is the posterior of N rows,
the root mean square of the rows' norms is about ``sqrt(S D / N)``.
"""

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

import numpy as np

from app.errors import InvalidRequest
from app.inference.core import reasons
from app.inference.core.capabilities import Artefact, Capability
from app.inference.core.facts import DeclaredFacts
from app.inference.core.grouping import choose_columns, make_grouping
from app.inference.core.knobs import Knob, Names, Parameter
from app.inference.core.model import Array64, Model
from app.inference.core.plan import GROUPS, Mechanism, MechanismPlan, PlannedQuery, PlanRequest
from app.inference.core.problems import Problem, make_problem, name_parameters
from app.inference.core.query import Oracle
from app.inference.core.release import Grade, GroupWeights, judge
from app.inference.methods.dp_groups.laws import BELIEF, read_law
from app.inference.methods.dp_groups.state import State
from app.inference.methods.dp_groups.weighing import weigh_groups
from app.inference.methods.dp_psvi.robust import bound_norm
from app.inference.methods.private import NOISE, check_parameters
from app.inference.methods.requests import check_size
from app.inference.methods.robustness import BETA, decorate, read_beta
from app.inference.models.gaussian import GaussianMean
from app.inference.models.robust import LEAST_BETA
from app.inference.post.diagnostics import round_stated
from app.inference.private_zone.mechanisms import CLIP_FLOOR, GRID_BITS, MAX_SCALE
from app.inference.private_zone.queries import GroupPotentialSum
from app.privacy.events import GaussianEvent

MOST_COLUMNS: Final = 10
MOST_VALUES: Final = 100_000
"""Largest number of values of an answer: single precision clips a unit of so many with little loss."""
COLUMNS: Final = Names(
    GROUPS,
    MOST_COLUMNS,
    "Categorical and binary columns; each combination of their declared values is a group. By default, those among the "
    "features. The columns may be others than the model's.",
)
DRAWS: Final = Parameter(
    "posterior_draws",
    "integer",
    2,
    1000,
    "Number of parameters at which groups are compared.",
    default=100,
)
USUAL_BETA: Final = 0.6
"""Chosen by measurement on census income (``make groups``), at the prior. It is also the published one for groups."""
POWER: Final = replace(
    BETA,
    description=(
        "Power of densities in a likelihood that limits the influence of rows that do not fit; 0 is off. By default, "
        f"{USUAL_BETA:g}, divided by the number of columns for gaussian-mean, and 0 for models that have none."
    ),
    default=None,
)
_LENGTHS, _MEDIANS, _POPULATION = 2.0, 2.0, 256


class DpGroups:
    """The registered method; stateless."""

    id = "dp-groups"
    description = (
        "Private weights of declared groups of rows, from one noised query: which groups carry the information, and "
        "which disagree with the model. No rows and no points leave."
    )
    private = True
    needs = frozenset({Capability.POTENTIALS})
    leaves = Artefact.GROUPS
    parameters: tuple[Knob, ...] = (COLUMNS, BELIEF, DRAWS, POWER)

    def plan(self, request: PlanRequest, facts: DeclaredFacts) -> MechanismPlan:
        """Plan the one query; ``size`` is the largest number of groups with a weight.

        Raises:
            InvalidRequest: pointing at the member of the request that is at fault.
        """
        check_size(request.size)
        problem = make_problem(request.model, facts)
        check_parameters(request, self.parameters)
        given = request.parameters
        names = tuple(given[GROUPS]) if GROUPS in given else choose_columns(request.model, facts)
        grouping = make_grouping(names, facts)
        draws = _read_draws(given, grouping.count)
        read_law(given, name_parameters(problem), problem.prior)
        beta = read_beta(given, problem.model) if POWER.name in given else _choose_beta(problem.model)
        mechanism = _read_mechanism(request)
        chosen: dict[str, Any] = {GROUPS: list(names), DRAWS.name: draws}
        chosen |= {BELIEF.name: given[BELIEF.name]} if BELIEF.name in given else {}
        chosen |= {POWER.name: beta}
        length = grouping.count * draws
        return MechanismPlan(
            method=self.id,
            size=request.size,
            model=request.model,
            parameters=chosen,
            mechanism=mechanism,
            clipping=_describe_clipping(names, grouping.count, draws, problem, facts, beta),
            grid_bits=GRID_BITS,
            queries=(PlannedQuery(GroupPotentialSum.kind, length, GaussianEvent(mechanism.noise_multiplier)),),
            steps=1,
        )

    def shorten(self, plan: MechanismPlan, facts: DeclaredFacts) -> MechanismPlan:
        """Return the plan itself: it has one query."""
        return plan

    def init(self, plan: MechanismPlan, facts: DeclaredFacts, rng: np.random.Generator) -> State:
        """Draw parameters from the belief, and choose the clipping norm by declared facts."""
        problem = make_problem(plan.model, facts)
        law = read_law(plan.parameters, name_parameters(problem), problem.prior)
        beta, count = read_beta(plan.parameters, problem.model), int(plan.parameters[DRAWS.name])
        draws = law.sample(rng, count)
        clip = _choose_clip(problem, draws, law.mean, facts, beta, rng)
        return State(plan, facts, problem, make_grouping(plan.parameters[GROUPS], facts), draws, clip, beta)

    def step(self, rng: np.random.Generator, state: State, oracle: Oracle) -> State:
        """Ask the sums of all groups."""
        count = state.grouping.count
        answer = oracle.ask(GroupPotentialSum(state.draws, state.clip, count, state.beta))
        return replace(state, answers=answer.reshape(count, -1))

    def finish(self, state: State) -> GroupWeights:
        """Weigh the groups.

        Raises:
            ValueError: before the query has been answered.
        """
        if state.answers is None or state.plan.mechanism is None:
            raise ValueError("groups are weighed after the query")
        noise = state.plan.mechanism.noise_multiplier * max(state.clip, CLIP_FLOOR)
        found = weigh_groups(state.answers, noise, state.plan.size)
        findings = [(reasons.GROUP_WEIGHTS, Grade.CENTRE_ONLY)]
        if not np.any(found.above_noise):
            findings.append((reasons.FEW_ROWS, Grade.NOT_USABLE))
        reliability = judge(findings)
        return GroupWeights(
            columns=tuple(column.name for column in state.grouping.columns),
            labels=state.grouping.labels,
            weight=found.weight,
            strength=found.strength,
            agreement=found.agreement,
            above_noise=found.above_noise,
            noise=noise,
            parameters=name_parameters(state.problem),
            draws=state.draws,
            answers=state.answers,
            design=state.problem.design.columns,
            reliability=reliability,
            diagnostics={
                "trusted": reliability.is_calibrated,
                "groups": state.grouping.count,
                "groups_above_noise": int(found.above_noise.sum()),
                "weighted_groups": int(np.count_nonzero(found.weight)),
                "explained": round_stated(found.explained),
                "signal_to_noise": round_stated(found.signal),
                "clipping_norm": round_stated(state.clip),
            },
        )


def _read_draws(given: Mapping[str, Any], groups: int) -> int:
    """Read the number of draws.

    Raises:
        InvalidRequest: an answer would have more than :data:`MOST_VALUES` values.
    """
    draws, most = int(given.get(DRAWS.name, DRAWS.default)), MOST_VALUES // groups
    if draws > most:
        raise InvalidRequest.at(f"/parameters/{DRAWS.name}", f"Use at most {most} draws for {groups} groups.")
    return draws


def _choose_beta(model: Model) -> float:
    """Choose the usual ``beta``, or 0 for a model without a beta-likelihood."""
    width = model.width if isinstance(model, GaussianMean) else 1
    try:
        return read_beta({POWER.name: max(USUAL_BETA / width, LEAST_BETA)}, model)
    except InvalidRequest:
        return 0.0


def _read_mechanism(request: PlanRequest) -> Mechanism:
    """Read the noise of the one query.

    Raises:
        InvalidRequest: pointing into ``/privacy``.
    """
    noise = request.noise_multiplier
    if request.mechanism is not None:
        noise = request.mechanism.noise_multiplier
        NOISE.check(noise, "/privacy/noise_multiplier")
        if request.mechanism.sampling_rate != 1:
            raise InvalidRequest.at("/privacy/sampling_rate", "This method asks all rows; use 1.")
        if request.mechanism.iterations != 1:
            raise InvalidRequest.at("/privacy/iterations", "This method asks one query; use 1.")
    if noise is None or not 0 < noise <= MAX_SCALE:
        raise InvalidRequest.at("/privacy", "State a target epsilon that can be reached, or a mechanism.")
    return Mechanism(noise, 1.0, 1)


def _choose_clip(  # noqa: PLR0917  (public facts and draws)
    problem: Problem, draws: Array64, mean: Array64, facts: DeclaredFacts, beta: float, rng: np.random.Generator
) -> float:
    """Choose the clipping norm from draws and declared facts alone."""
    plain, design, _ = problem
    model, count = decorate(plain, beta), len(draws)
    with np.errstate(all="ignore"):
        x = design.sample(rng, _POPULATION)
        targets = plain.sample_targets(rng, x, mean)
        if design.target_bounds is not None:
            targets = np.clip(targets, *design.target_bounds)
        potentials = model.log_likelihood(plain.fold(x, targets), draws)
        norms = np.linalg.norm(potentials - potentials.mean(axis=1, keepdims=True), axis=1)
    middle = float(np.median(np.nan_to_num(norms, nan=0.0, posinf=0.0)))
    least = _LENGTHS * math.sqrt(count * plain.dimension / facts.slots)
    longest = bound_norm(model, count, facts.rows_per_unit)
    return float(min(max(_MEDIANS * middle, least, CLIP_FLOOR), longest))


def _describe_clipping(  # noqa: PLR0917  (public facts)
    names: tuple[str, ...], groups: int, draws: int, problem: Problem, facts: DeclaredFacts, beta: float
) -> str:
    values = f"potentials of the beta-likelihood (beta = {beta:.4g})" if beta else "log-likelihoods"
    least = _LENGTHS * math.sqrt(draws * problem.model.dimension / facts.slots)
    longest = bound_norm(decorate(problem.model, beta), draws, facts.rows_per_unit)
    most = "" if math.isinf(longest) else f", and at most {longest:.4g}, which no unit exceeds"
    return (
        f"The columns {', '.join(names)} make {groups} declared groups. Each row contributes {draws} {values} at draws "
        "from the stated belief, centred, to the sum of its group. The contributions of a unit to all groups are "
        f"clipped together to L2 norm C, divided by C/2^{GRID_BITS} and rounded to integers whose squares sum to at "
        f"most 2^{2 * GRID_BITS}. C is {_MEDIANS:g} times the median norm over rows that are drawn from the declared "
        f"bounds, and at least {least:.4g}{most}."
    )
