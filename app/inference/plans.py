"""Plans as JSON, so that a job can be carried out exactly as it was priced."""

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from app.inference.protocol import Mechanism, MechanismPlan, ModelSpec, PriorSpec
from app.privacy import events


def to_json(plan: MechanismPlan) -> dict[str, Any]:
    """A plain JSON form of ``plan``; floats keep every bit."""
    return {
        "method": plan.method,
        "size": plan.size,
        "model": {**asdict(plan.model), "features": list(plan.model.features)},
        "parameters": dict(plan.parameters),
        "mechanism": None if plan.mechanism is None else asdict(plan.mechanism),
        "answer_length": plan.answer_length,
        "clipping": plan.clipping,
        "grid_bits": plan.grid_bits,
        "events": [events.to_json(event) for event in plan.events],
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
    model, mechanism = fields.pop("model"), fields.pop("mechanism")
    return MechanismPlan(
        **{
            **fields,
            "model": _model(model),
            "mechanism": None if mechanism is None else Mechanism(**mechanism),
            "events": tuple(events.from_json(event) for event in fields["events"]),
            "warnings": tuple(fields["warnings"]),
        }
    )


def _model(document: Mapping[str, Any]) -> ModelSpec:
    """A model; one that was planned before priors had more than a scale, too."""
    fields = dict(document)
    prior = PriorSpec(fields.pop("prior_scale")) if "prior_scale" in fields else PriorSpec(**fields.pop("prior"))
    return ModelSpec(**{**fields, "features": tuple(fields["features"]), "prior": prior})
