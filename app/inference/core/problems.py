"""Makes the inference problem of a request: the model, its design and its prior."""

from typing import Final, NamedTuple

from app.errors import InvalidRequest
from app.inference.core.design import Design, build
from app.inference.core.facts import DeclaredFacts
from app.inference.core.model import Model
from app.inference.core.plan import ModelSpec
from app.inference.core.priors import Prior, make_prior
from app.inference.models import find_family

MAX_PARAMETERS: Final = 2048


class Problem(NamedTuple):
    """A model, its design and its prior. Together with rows they define a posterior."""

    model: Model
    design: Design
    prior: Prior


def make_problem(spec: ModelSpec, facts: DeclaredFacts) -> Problem:
    """Make model, design and prior of ``spec`` over the declared columns.

    Raises:
        InvalidRequest: the model has no likelihood, or is not valid for these facts. The error points into ``/model``
            of the request.
    """
    chosen = find_family(spec.family)
    if chosen.bind is None:
        raise InvalidRequest.at("/model/family", "This model has no likelihood of rows. Use the method vips.")
    chosen.check_settings(spec)
    design = build(spec, facts, chosen)
    model = chosen.bind(spec, design.width, design.target)
    if model.dimension > MAX_PARAMETERS:
        raise InvalidRequest.at(
            "/model/features", f"These features make more than {MAX_PARAMETERS} parameters; name fewer features."
        )
    return Problem(model, design, make_prior(spec.prior, design.columns, model))


def name_parameters(problem: Problem) -> tuple[str, ...]:
    """Name the D parameters of the problem's model."""
    return problem.model.parameter_names([column.name for column in problem.design.columns])
