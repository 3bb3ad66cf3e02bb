"""The registry of methods and models in the form of the HTTP contract."""

from app.catalogue.schemas import Catalogue, MethodView, ModelView
from app.inference import registry
from app.inference.core.method import Method
from app.inference.models.definition import Family


def make_catalogue() -> Catalogue:
    """List all registered methods and model families."""
    return Catalogue(
        methods=[_method(entry) for entry in registry.list_methods()],
        models=[_model(entry) for entry in registry.list_families()],
    )


def _model(family: Family) -> ModelView:
    return ModelView(
        family=family.name,
        description=family.description,
        target_types=list(family.targets),
        least_target=family.least_target,
        feature_types=list(family.features),
        terms=family.terms,
        intercept=family.intercept,
        noise_scale="optional" if family.noise_scale else "none",
        noise_covariance="optional" if family.noise_covariance else "none",
        degrees_of_freedom="none" if family.degrees_of_freedom is None else "optional",
        dispersion="none" if family.dispersion is None else "optional",
        settings={setting.name: setting.schema() for setting in family.settings},
        offers=sorted(registry.list_capabilities(family)),
    )


def _method(method: Method) -> MethodView:
    return MethodView(
        id=method.id,
        description=method.description,
        may_run_on_private_data=method.private,
        default=method.id == registry.DEFAULT,
        needs=sorted(method.needs),
        leaves=str(method.leaves),
        models=[family.name for family in registry.list_families() if registry.takes(method, family)],
        parameters={
            "type": "object",
            "additionalProperties": False,
            "properties": {parameter.name: parameter.schema() for parameter in method.parameters},
        },
    )
