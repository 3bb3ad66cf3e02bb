"""The registered models: a new one is a file here and a line below."""

from app.errors import InvalidRequest
from app.inference.models import gaussian, linear, logistic, multinomial, poisson, probit
from app.inference.models.definition import Family

_FAMILIES: dict[str, Family] = {
    each.name: each
    for each in (
        logistic.FAMILY,
        probit.FAMILY,
        linear.FAMILY,
        poisson.FAMILY,
        multinomial.FAMILY,
        gaussian.FAMILY,
    )
}


def family(name: str) -> Family:
    """The family of that name.

    Raises:
        InvalidRequest: at ``/model/family``.
    """
    if name not in _FAMILIES:
        raise InvalidRequest.at("/model/family", "unknown model; GET /v1/methods lists what there is")
    return _FAMILIES[name]


def families() -> tuple[Family, ...]:
    """Every registered family."""
    return tuple(_FAMILIES.values())
