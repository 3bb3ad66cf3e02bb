"""The registry in the words of the HTTP contract."""

from app.catalogue.schemas import Catalogue, MethodView, ModelView
from app.inference import registry
from app.inference.protocol import Method


def catalogue() -> Catalogue:
    """Everything that is registered."""
    return Catalogue(
        methods=[_method(entry) for entry in registry.methods()],
        models=[ModelView(family=entry.name, description=entry.description) for entry in registry.families()],
    )


def _method(method: Method) -> MethodView:
    return MethodView(
        id=method.id,
        description=method.description,
        may_run_on_private_data=method.private,
        parameters={
            "type": "object",
            "additionalProperties": False,
            "properties": {parameter.name: parameter.schema() for parameter in method.parameters},
        },
    )
