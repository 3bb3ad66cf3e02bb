"""Conjugate-exponential models: families whose sums of bounded statistics determine a belief.

To add one, write a module in this package, and add its function to ``_MAKERS``.
"""

from collections.abc import Callable
from typing import Final, NamedTuple, Protocol

from app.errors import InvalidRequest
from app.inference.conjugate import belief_network, gaussian, linear, logistic, topics
from app.inference.core.facts import DeclaredFacts
from app.inference.core.grouping import GROUP_KINDS, make_grouped_problem
from app.inference.core.model import RowModel
from app.inference.core.plan import GROUPS, MechanismPlan, ModelSpec
from app.inference.core.problems import make_problem
from app.inference.core.statistics import STATISTIC_KINDS, ConjugateModel, RowEncoder


class ConjugateProblem(NamedTuple):
    """A conjugate-exponential model and its encoder. The model holds its prior."""

    model: ConjugateModel
    design: RowEncoder


class RowProblem(Protocol):
    """The parts of a problem that the private zone needs: both kinds of problems have them."""

    @property
    def model(self) -> RowModel:
        """Folds encoded rows; its values are summed by queries."""

    @property
    def design(self) -> RowEncoder:
        """Encodes declared columns."""


_MAKERS: Final[dict[str, Callable[[ModelSpec, DeclaredFacts], tuple[ConjugateModel, RowEncoder]]]] = {
    "logistic-regression": logistic.make_statistics,
    "linear-regression": linear.make_statistics,
    "gaussian": gaussian.make_statistics,
    "latent-dirichlet-allocation": topics.make_statistics,
    "sigmoid-belief-network": belief_network.make_statistics,
}


def has_statistics(family: str) -> bool:
    """Whether ``family`` has a conjugate-exponential model."""
    return family in _MAKERS


def make_conjugate_problem(spec: ModelSpec, facts: DeclaredFacts) -> ConjugateProblem:
    """Make the conjugate-exponential model of ``spec`` over the declared columns, and its encoder.

    Raises:
        InvalidRequest: the family has no such model, or is not valid for these facts. The error points into ``/model``
            of the request.
    """
    if not has_statistics(spec.family):
        raise InvalidRequest.at("/model/family", "This model has no conjugate form. Use another method or model.")
    return ConjugateProblem(*_MAKERS[spec.family](spec, facts))


def make_run_problem(plan: MechanismPlan, facts: DeclaredFacts) -> RowProblem:
    """Make the model and the encoder whose rows the queries of ``plan`` sum."""
    if any(query.kind in STATISTIC_KINDS for query in plan.queries):
        return make_conjugate_problem(plan.model, facts)
    if any(query.kind in GROUP_KINDS for query in plan.queries):
        return make_grouped_problem(plan.model, plan.parameters[GROUPS], facts)
    return make_problem(plan.model, facts)
