"""What the server can run."""

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict


class MethodView(BaseModel):
    """A method. ``parameters`` is the JSON Schema of a job's ``parameters``; ``default``: where a job names none."""

    id: str
    description: str
    may_run_on_private_data: bool
    default: bool
    parameters: dict[str, Any]


class ModelView(BaseModel):
    """A model family, for ``model.family`` of a job.

    ``target_types`` is empty for a model without a target; ``least_target`` bounds its declared lower bound.
    """

    family: str
    description: str
    target_types: list[str]
    least_target: float | None
    feature_types: list[str]
    intercept: bool
    noise_scale: Literal["none", "optional"]


class Catalogue(BaseModel):
    """All methods and models; every method takes every model."""

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
                        }
                    ],
                }
            ]
        }
    )

    methods: list[MethodView]
    models: list[ModelView]
