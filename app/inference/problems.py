"""A model request over a declared table, made concrete: the model, its design and its prior."""

from typing import NamedTuple

from app.inference.design import Design, build
from app.inference.models import family
from app.inference.priors import Prior, prior_of
from app.inference.protocol import DeclaredFacts, Model, ModelSpec


class Problem(NamedTuple):
    """What a posterior needs besides data."""

    model: Model
    design: Design
    prior: Prior


def model_for(spec: ModelSpec, facts: DeclaredFacts) -> Problem:
    """Model, design and prior of ``spec`` over the declared columns.

    Raises:
        InvalidRequest: pointing into ``/model`` of the request.
    """
    found = family(spec.family)
    found.check_noise_scale(spec.noise_scale)
    design = build(spec, facts, found)
    model = found.bind(spec, design.width, design.target)
    return Problem(model, design, prior_of(spec.prior, design.columns, model))
