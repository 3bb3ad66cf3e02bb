"""Plans as JSON, so that a job can be carried out exactly as it was priced."""

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from app.inference.core.plan import Mechanism, MechanismPlan, ModelSpec, PlannedQuery, PriorSpec
from app.privacy import events
from app.privacy.events import GaussianEvent, NonPrivateEvent, PoissonSampledEvent


def to_json(plan: MechanismPlan) -> dict[str, Any]:
    """A plain JSON form of ``plan``; floats keep every bit."""
    return {
        "method": plan.method,
        "size": plan.size,
        "model": {**asdict(plan.model), "features": list(plan.model.features)},
        "parameters": dict(plan.parameters),
        "mechanism": None if plan.mechanism is None else asdict(plan.mechanism),
        "clipping": plan.clipping,
        "grid_bits": plan.grid_bits,
        "queries": [query_to_json(query) for query in plan.queries],
        "steps": plan.steps,
        "warnings": list(plan.warnings),
    }


def from_json(document: Mapping[str, Any]) -> MechanismPlan:
    """The plan that :func:`to_json` wrote.

    Raises:
        UnknownEvent: for an event that this version does not know.
        KeyError, TypeError: for a document that is not a plan.
    """
    fields = dict(document)
    model, mechanism, queries = fields.pop("model"), fields.pop("mechanism"), _queries(fields)
    return MechanismPlan(
        **{
            **fields,
            "model": model_from_json(model),
            "mechanism": None if mechanism is None else Mechanism(**mechanism),
            "queries": queries,
            "warnings": tuple(fields["warnings"]),
        }
    )


def model_from_json(document: Mapping[str, Any]) -> ModelSpec:
    """The model of a plan's JSON; one that was planned before priors had more than a scale, too."""
    fields = dict(document)
    prior = PriorSpec(fields.pop("prior_scale")) if "prior_scale" in fields else PriorSpec(**fields.pop("prior"))
    return ModelSpec(**{**fields, "features": tuple(fields["features"]), "prior": prior})


def query_to_json(query: PlannedQuery) -> dict[str, Any]:
    """A plain JSON form of ``query``."""
    return {
        "kind": query.kind,
        "length": query.length,
        "event": events.to_json(query.event),
        "count": query.count,
    }


def _queries(fields: dict[str, Any]) -> tuple[PlannedQuery, ...]:
    """The queries; those that were planned when all were sums of potentials, too."""
    if "queries" in fields:
        return tuple(_query(query) for query in fields.pop("queries"))
    length, planned = fields.pop("answer_length"), [events.from_json(event) for event in fields.pop("events")]
    if planned == [NonPrivateEvent()]:
        return ()
    return tuple(PlannedQuery("potential_sum", length, *each) for each in events.flatten(planned))


def _query(document: Mapping[str, Any]) -> PlannedQuery:
    event = events.from_json(document["event"])
    if not isinstance(event, GaussianEvent | PoissonSampledEvent):
        raise events.UnknownEvent("a query is one atomic event")
    return PlannedQuery(**{**document, "event": event})
