"""Plans as JSON: a job stores its plan and is carried out exactly as it was priced."""

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any, Final

from app.inference.core.designs import feature_from_json, feature_to_json
from app.inference.core.plan import Mechanism, MechanismPlan, ModelSpec, PlannedQuery, PriorSpec
from app.privacy import events
from app.privacy.events import GaussianEvent, NonPrivateEvent, PoissonSampledEvent

_LATER_SETTINGS: Final = frozenset(
    {
        "degrees_of_freedom",
        "dispersion",
        "topics",
        "document_concentration",
        "topic_concentration",
        "hidden_units",
        "noise_covariance",
    }
)


def to_json(plan: MechanismPlan) -> dict[str, Any]:
    """Convert ``plan`` to plain JSON; floats keep every bit."""
    return {
        "method": plan.method,
        "size": plan.size,
        "model": _model_to_json(plan.model),
        "parameters": dict(plan.parameters),
        "mechanism": None if plan.mechanism is None else asdict(plan.mechanism),
        "clipping": plan.clipping,
        "grid_bits": plan.grid_bits,
        "queries": [query_to_json(query) for query in plan.queries],
        "steps": plan.steps,
        "warnings": list(plan.warnings),
    }


def from_json(document: Mapping[str, Any]) -> MechanismPlan:
    """Read the plan that :func:`to_json` wrote.

    Raises:
        UnknownEvent: for an event that this version does not know.
        KeyError, TypeError: for a document that is not a plan.
    """
    fields = dict(document)
    model, mechanism, queries = fields.pop("model"), fields.pop("mechanism"), _pop_queries(fields)
    return MechanismPlan(
        **{
            **fields,
            "model": model_from_json(model),
            "mechanism": None if mechanism is None else Mechanism(**mechanism),
            "queries": queries,
            "warnings": tuple(fields["warnings"]),
        }
    )


def _model_to_json(model: ModelSpec) -> dict[str, Any]:
    """Convert a model to plain JSON; settings that earlier versions did not have are left out if they have no value."""
    members = {**asdict(model), "features": [feature_to_json(feature) for feature in model.features]}
    if not model.prior.mean:
        del members["prior"]["mean"]
    return {name: value for name, value in members.items() if value is not None or name not in _LATER_SETTINGS}


def model_from_json(document: Mapping[str, Any]) -> ModelSpec:
    """Read the model of a plan's JSON.

    Plans of older versions state a ``prior_scale`` instead of a ``prior``.
    """
    fields = dict(document)
    prior = PriorSpec(fields.pop("prior_scale")) if "prior_scale" in fields else PriorSpec(**fields.pop("prior"))
    return ModelSpec(**{**fields, "features": tuple(map(feature_from_json, fields["features"])), "prior": prior})


def query_to_json(query: PlannedQuery) -> dict[str, Any]:
    """Convert ``query`` to plain JSON."""
    return {
        "kind": query.kind,
        "length": query.length,
        "event": events.to_json(query.event),
        "count": query.count,
    }


def _pop_queries(fields: dict[str, Any]) -> tuple[PlannedQuery, ...]:
    """Remove the queries from ``fields`` and read them.

    Plans of older versions state ``events`` and ``answer_length``; all their queries are sums of potentials.
    """
    if "queries" in fields:
        return tuple(_parse_query(query) for query in fields.pop("queries"))
    length, planned = fields.pop("answer_length"), [events.from_json(event) for event in fields.pop("events")]
    if planned == [NonPrivateEvent()]:
        return ()
    return tuple(PlannedQuery("potential_sum", length, *each) for each in events.flatten(planned))


def _parse_query(document: Mapping[str, Any]) -> PlannedQuery:
    event = events.from_json(document["event"])
    if not isinstance(event, GaussianEvent | PoissonSampledEvent):
        raise events.UnknownEvent("a query must have one atomic event")
    return PlannedQuery(**{**document, "event": event})
