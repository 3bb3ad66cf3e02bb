"""Response bodies of the catalogue of methods and models."""

from typing import Any, Literal

from pydantic import ConfigDict

from app.http.requests.bodies import ResponseBody


class MethodView(ResponseBody):
    """A method that jobs can use."""

    id: str
    """Id of the method, for `method` of a job."""
    description: str
    """Description of the method."""
    may_run_on_private_data: bool
    """Whether the method may run on datasets whose sensitivity is `private`."""
    default: bool
    """Whether a job that names no method uses this one."""
    needs: list[str]
    """Capabilities that a model must offer: `potentials`, `scores`, `information`, `statistics`."""
    leaves: Literal["points", "belief", "groups"]
    """`points`: a release has points, and a belief if the method states one. `belief`: it has a belief, and points only
    if the belief is normal. `groups`: it has weights of declared groups of rows, and no points."""
    models: list[str]
    """Families of models that the method takes."""
    parameters: dict[str, Any]
    """JSON Schema of `parameters` of a job."""


class ModelView(ResponseBody):
    """A family of models that jobs can use."""

    family: str
    """Name of the family, for `model.family` of a job."""
    description: str
    """Description of the family."""
    target_types: list[str]
    """Types that the target column may have; empty for a family without a target."""
    least_target: float | None
    """Smallest lower bound that the target column may declare; null: no minimum."""
    feature_types: list[str]
    """Types that feature columns may have."""
    terms: bool
    """Whether features may be terms, such as interactions and splines."""
    intercept: bool
    """Whether the design has an intercept column."""
    noise_scale: Literal["none", "optional"]
    """`optional`: a job may state `model.noise_scale`; `none`: it may not."""
    noise_covariance: Literal["none", "optional"]
    """`optional`: a job may state `model.noise_covariance`; `none`: it may not."""
    degrees_of_freedom: Literal["none", "optional"]
    """`optional`: a job may state `model.degrees_of_freedom`; `none`: it may not."""
    dispersion: Literal["none", "optional"]
    """`optional`: a job may state `model.dispersion`; `none`: it may not."""
    settings: dict[str, Any]
    """JSON Schemas of further members of `model` that the family accepts, by name."""
    offers: list[str]
    """Capabilities of the family; a method takes it if these include all that the method needs."""


class Catalogue(ResponseBody):
    """All methods and model families, and which method takes which family."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "methods": [
                        {
                            "id": "dp-psvi-surrogate",
                            "description": "Private pseudocoresets by few queries and an exact fit.",
                            "may_run_on_private_data": True,
                            "default": True,
                            "needs": ["information", "scores"],
                            "leaves": "points",
                            "models": ["logistic-regression"],
                            "parameters": {
                                "type": "object",
                                "additionalProperties": False,
                                "properties": {
                                    "rounds": {"type": "integer", "minimum": 2, "maximum": 40},
                                },
                            },
                        }
                    ],
                    "models": [
                        {
                            "family": "logistic-regression",
                            "description": "A binary target.",
                            "target_types": ["binary"],
                            "least_target": None,
                            "feature_types": ["integer", "real", "categorical", "binary"],
                            "terms": True,
                            "intercept": True,
                            "noise_scale": "none",
                            "noise_covariance": "none",
                            "degrees_of_freedom": "none",
                            "dispersion": "none",
                            "settings": {},
                            "offers": ["information", "potentials", "scores", "statistics"],
                        }
                    ],
                }
            ]
        }
    )

    methods: list[MethodView]
    """All methods."""
    models: list[ModelView]
    """All model families."""
