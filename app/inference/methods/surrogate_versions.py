"""The registered method ``dp-psvi-surrogate``: two versions, chosen by a parameter.

Version 1 (:mod:`app.inference.methods.surrogate`) is the default. Version 2 (:mod:`app.inference.methods.one_belief`)
states its error correctly where rows do not follow the model. A stored plan of version 2 names it, and other plans are
of version 1. So each plan is carried out by the version that was priced.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

import numpy as np

from app.inference.core.facts import DeclaredFacts
from app.inference.core.knobs import Choice, Parameter, Switch
from app.inference.core.method import PrivateMethod
from app.inference.core.plan import MechanismPlan, PlanRequest
from app.inference.core.query import Oracle
from app.inference.core.release import Pseudocoreset
from app.inference.methods.one_belief.method import OneBelief
from app.inference.methods.one_belief.state import Opening, Result, Search
from app.inference.methods.private import check_parameters
from app.inference.methods.surrogate.method import DpPsviSurrogate

VERSION: Final = Parameter(
    "version",
    "integer",
    1,
    2,
    "Version of the method. Version 2 is new: it states its error correctly where targets do not follow the model.",
    default=1,
)
_FIRST, _SECOND = DpPsviSurrogate(), OneBelief()


class SurrogateVersions:
    """Both versions as one method; stateless. The state's type shows the version of a run."""

    id = DpPsviSurrogate.id
    description = DpPsviSurrogate.description
    private = True
    parameters: tuple[Parameter | Choice | Switch, ...] = (*DpPsviSurrogate.parameters, VERSION)

    def plan(self, request: PlanRequest, facts: DeclaredFacts) -> MechanismPlan:
        """Plan the run by the version that the request chooses.

        Raises:
            InvalidRequest: pointing at the member of the request that is at fault.
        """
        check_parameters(request, self.parameters)
        rest = {name: value for name, value in request.parameters.items() if name != VERSION.name}
        plan = _choose(request.parameters).plan(replace(request, parameters=rest), facts)
        if _choose(request.parameters) is _FIRST:
            return plan
        return replace(plan, parameters={**plan.parameters, VERSION.name: 2})

    def shorten(self, plan: MechanismPlan, facts: DeclaredFacts) -> MechanismPlan:
        """Shorten a plan for a dry run, by its version."""
        return _choose(plan.parameters).shorten(plan, facts)

    def init(self, plan: MechanismPlan, facts: DeclaredFacts, rng: np.random.Generator) -> Any:
        """Make the first state of the plan's version.

        Raises:
            OtherVersion: for a plan that this version would not make.
        """
        return _choose(plan.parameters).init(plan, facts, rng)

    def step(self, rng: np.random.Generator, state: Any, oracle: Oracle) -> Any:
        """Ask the next query."""
        return _choose_by_state(state).step(rng, state, oracle)

    def finish(self, state: Any) -> Pseudocoreset:
        """Return the points, with their diagnostics, error and reliability.

        Raises:
            ValueError: before the last query has been answered.
        """
        return _choose_by_state(state).finish(state)


def _choose(parameters: Mapping[str, Any]) -> PrivateMethod[Any]:
    return _SECOND if parameters.get(VERSION.name, VERSION.default) == 2 else _FIRST


def _choose_by_state(state: Any) -> PrivateMethod[Any]:
    return _SECOND if isinstance(state, Opening | Search | Result) else _FIRST
