"""``beta`` of the default method: scores and information of a beta-likelihood.

The method runs as without ``beta``, with a decorated model (:mod:`app.inference.models.robust`). Its belief is then
about the beta-posterior ``N(theta, H^-1)`` of the rows. Beta-scores have mean zero under the model, and their weights
depend on the design row alone. The points are fitted to the belief under the model itself: their posterior is the
beta-posterior.
"""

from dataclasses import fields, replace
from typing import Any, Final, cast

import numpy as np

from app.errors import InvalidRequest
from app.inference.core import reasons
from app.inference.core.design import Design
from app.inference.core.facts import DeclaredFacts
from app.inference.core.knobs import Choice, Parameter, Switch
from app.inference.core.model import Array64
from app.inference.core.plan import MechanismPlan, PlanRequest
from app.inference.core.problems import Problem
from app.inference.core.query import Oracle, Query
from app.inference.core.release import Grade, Pseudocoreset, judge
from app.inference.methods.robustness import BETA, decorate, read_beta
from app.inference.methods.surrogate.method import OneBelief
from app.inference.methods.surrogate.state import Result, State
from app.inference.models.robust import Robust
from app.inference.private_zone.queries import (
    BoundedScoreSum,
    InformationSum,
    RobustInformationSum,
    RobustScoreSum,
)

_ROBUST: Final[dict[str, type[RobustScoreSum] | type[RobustInformationSum]]] = {
    BoundedScoreSum.kind: RobustScoreSum,
    InformationSum.kind: RobustInformationSum,
}
_PLAIN: Final = {robust.kind: kind for kind, robust in _ROBUST.items()}
_WORDS: Final = " Scores and information matrices belong to the beta-likelihood (beta = {:.4g})."


class RobustOracle:
    """Asks queries about scores and information under a beta-likelihood."""

    def __init__(self, oracle: Oracle, beta: float) -> None:
        self._oracle, self._beta = oracle, beta

    def ask(self, query: Query) -> Array64:
        """Ask ``query`` with ``beta``; queries about design rows alone do not change."""
        robust = _ROBUST.get(query.kind)
        if robust is None:
            return self._oracle.ask(query)
        values: dict[str, Any] = {field.name: getattr(query, field.name) for field in fields(cast(Any, query))}
        return self._oracle.ask(robust(**values, beta=self._beta))


class RobustBelief(OneBelief):
    """The registered default method; stateless."""

    parameters: tuple[Parameter | Choice | Switch, ...] = (*OneBelief.parameters, BETA)

    def make_problem(self, request: PlanRequest | MechanismPlan, facts: DeclaredFacts) -> Problem:
        """Make model, design and prior, and decorate the model.

        Raises:
            InvalidRequest: at ``/parameters/beta``, for a family without it.
        """
        problem = super().make_problem(request, facts)
        beta = read_beta(request.parameters, problem.model)
        _check_labels(problem.design, beta)
        return problem._replace(model=decorate(problem.model, beta))

    def plan(self, request: PlanRequest, facts: DeclaredFacts) -> MechanismPlan:
        """Plan as without ``beta``, with other kinds of queries."""
        return _add_beta(super().plan(request, facts), float(request.parameters.get(BETA.name, 0.0)))

    def shorten(self, plan: MechanismPlan, facts: DeclaredFacts) -> MechanismPlan:
        """Shorten a plan for a dry run."""
        beta = _read(plan)
        return _add_beta(super().shorten(_remove_beta(plan), facts), beta)

    def init(self, plan: MechanismPlan, facts: DeclaredFacts, rng: np.random.Generator) -> State:
        """Make the first state, before any query."""
        return super().init(_remove_beta(plan), facts, rng)

    def step(self, rng: np.random.Generator, state: State, oracle: Oracle) -> State:
        """Ask the next query, under the beta-likelihood if there is one."""
        model = None if isinstance(state, Result) else state.setup.model
        return super().step(rng, state, RobustOracle(oracle, model.beta) if isinstance(model, Robust) else oracle)

    def finish(self, state: State) -> Pseudocoreset:
        """Return the points; with ``beta``, the grade is at most ``centre-only``.

        The stated error does not cover the bias that bounds on scores add if rows do not follow the model.
        """
        release = super().finish(state)
        assert isinstance(state, Result)
        if release.reliability is None or not isinstance(state.search.setup.model, Robust):
            return release
        found = [(reason, release.reliability.grade) for reason in release.reliability.reasons]
        limited = judge([*found, (reasons.BETA_CENTRE, Grade.CENTRE_ONLY)])
        return replace(release, reliability=limited, diagnostics={**release.diagnostics, "trusted": False})


def _check_labels(design: Design, beta: float) -> None:
    """Refuse ``beta`` for targets whose beta-scores the method's belief does not describe."""
    if beta and (design.target is None or design.target.type != "binary"):
        raise InvalidRequest.at(
            "/parameters/beta", "This method has beta for binary targets only; use dp-psvi for other models."
        )


def _read(plan: MechanismPlan) -> float:
    return float(plan.parameters.get(BETA.name, 0.0))


def _add_beta(plan: MechanismPlan, beta: float) -> MechanismPlan:
    """State ``beta`` in parameters, queries and clipping rule; 0 changes nothing."""
    if not beta:
        return plan
    return replace(
        plan,
        parameters={**plan.parameters, BETA.name: beta},
        clipping=plan.clipping + _WORDS.format(beta),
        queries=tuple(
            replace(query, kind=_ROBUST[query.kind].kind if query.kind in _ROBUST else query.kind)
            for query in plan.queries
        ),
    )


def _remove_beta(plan: MechanismPlan) -> MechanismPlan:
    """Undo :func:`_add_beta`, except for the parameter."""
    beta = _read(plan)
    if not beta:
        return plan
    return replace(
        plan,
        clipping=plan.clipping.removesuffix(_WORDS.format(beta)),
        queries=tuple(replace(query, kind=_PLAIN.get(query.kind, query.kind)) for query in plan.queries),
    )
