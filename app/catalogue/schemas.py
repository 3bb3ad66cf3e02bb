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
    intercept: bool
    """Whether the design has an intercept column."""
    noise_scale: Literal["none", "optional"]
    """`optional`: a job may state `model.noise_scale`; `none`: it may not."""
    degrees_of_freedom: Literal["none", "optional"]
    """`optional`: a job may state `model.degrees_of_freedom`; `none`: it may not."""
    dispersion: Literal["none", "optional"]
    """`optional`: a job may state `model.dispersion`; `none`: it may not."""


class Catalogue(ResponseBody):
    """All methods and model families. Every method accepts every family."""

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
                            "intercept": True,
                            "noise_scale": "none",
                            "degrees_of_freedom": "none",
                            "dispersion": "none",
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
