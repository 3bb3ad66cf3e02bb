"""The registered families of models.

To add one, write a module in this package, and add its family to ``_FAMILIES``.
"""

from app.errors import InvalidRequest
from app.inference.models import gaussian, linear, logistic, multinomial, negative_binomial, poisson, probit, student_t
from app.inference.models.definition import Family
from app.inference.models.without_likelihood import GAUSSIAN, LATENT_DIRICHLET, SIGMOID_BELIEF

_FAMILIES: dict[str, Family] = {
    each.name: each
    for each in (
        logistic.FAMILY,
        probit.FAMILY,
        linear.FAMILY,
        student_t.FAMILY,
        poisson.FAMILY,
        negative_binomial.FAMILY,
        multinomial.FAMILY,
        gaussian.FAMILY,
        GAUSSIAN,
        LATENT_DIRICHLET,
        SIGMOID_BELIEF,
    )
}


def find_family(name: str) -> Family:
    """Find the family called ``name``.

    Raises:
        InvalidRequest: at ``/model/family``, if there is none.
    """
    if name not in _FAMILIES:
        raise InvalidRequest.at("/model/family", "Unknown model; GET /v1/methods lists the models.")
    return _FAMILIES[name]


def list_families() -> tuple[Family, ...]:
    """List every registered family."""
    return tuple(_FAMILIES.values())
