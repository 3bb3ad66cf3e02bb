"""The registered models: a new one is a file here and a line below."""

from app.errors import InvalidRequest
from app.inference.models.logistic import LogisticRegression
from app.inference.protocol import Model

_MODELS: dict[str, Model] = {each.family: each for each in (LogisticRegression(),)}


def model(family: str) -> Model:
    """The model of that family.

    Raises:
        InvalidRequest: at ``/model/family``.
    """
    if family not in _MODELS:
        raise InvalidRequest.at("/model/family", "unknown model; GET /v1/methods lists what there is")
    return _MODELS[family]


def models() -> tuple[Model, ...]:
    """Every registered model."""
    return tuple(_MODELS.values())
