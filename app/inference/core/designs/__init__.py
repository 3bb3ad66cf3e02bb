"""Features of a model: names of declared columns, and terms.

To add a term, write a class with the protocol :class:`app.inference.core.designs.encoder.Term` in a module of this
package, and add it to ``_TERMS``. Every feature is a function of declared facts and of the request alone (W6).
"""

from collections.abc import Mapping
from typing import Any, Final

from app.inference.core.designs.columns import Name
from app.inference.core.designs.encoder import Term
from app.inference.core.designs.fourier import Fourier
from app.inference.core.designs.interaction import Interaction
from app.inference.core.designs.network import Network
from app.inference.core.designs.polynomial import Polynomial
from app.inference.core.designs.spline import Spline

__all__ = [
    "Feature",
    "Fourier",
    "Interaction",
    "Name",
    "Network",
    "Polynomial",
    "Spline",
    "Term",
    "feature_from_json",
    "feature_to_json",
    "make_term",
]

Feature = str | Term
"""A feature of a request: the name of a declared column, or a term."""

_TERMS: Final[Mapping[str, type[Term]]] = {
    each.kind: each for each in (Interaction, Polynomial, Spline, Fourier, Network)
}


def make_term(feature: Feature) -> Term:
    """Make the term of a feature; a name is a term, too."""
    return Name(feature) if isinstance(feature, str) else feature


def feature_to_json(feature: Feature) -> str | dict[str, Any]:
    """Convert a feature to the JSON of requests, plans and releases."""
    return feature if isinstance(feature, str) else feature.to_json()


def feature_from_json(document: str | Mapping[str, Any]) -> Feature:
    """Read what :func:`feature_to_json` wrote.

    Raises:
        KeyError, TypeError, ValueError: for a document that is no feature.
    """
    if isinstance(document, str):
        return document
    (kind,) = document.keys() & _TERMS.keys()
    return _TERMS[kind].from_json(document)
