"""Request bodies of the features of a model: names of columns, and terms."""

from typing import Annotated, Any, Final, Literal

from pydantic import Discriminator, Field, Tag

from app.http.requests.bodies import Body
from app.inference.core.designs import Feature, feature_from_json
from app.inference.core.designs.fourier import LEAST_UNITS, MOST_COLUMNS, MOST_NUMBER, MOST_UNITS
from app.inference.core.designs.interaction import LEAST as LEAST_MEMBERS
from app.inference.core.designs.interaction import MOST as MOST_MEMBERS
from app.inference.core.designs.mapped import MOST_INPUTS
from app.inference.core.designs.network import MOST_LAYERS
from app.inference.core.designs.network import MOST_UNITS as MOST_IN_LAYER
from app.inference.core.designs.polynomial import LARGEST
from app.inference.core.designs.spline import DEGREE
from app.inference.core.designs.spline import LEAST as LEAST_DF
from app.inference.core.designs.spline import MOST as MOST_DF

Name = Annotated[str, Field(min_length=1, max_length=200)]
_KINDS: Final = ("interaction", "polynomial", "spline", "fourier", "network")


class PolynomialBody(Body):
    """Legendre polynomials of a real or integer column, orthogonal on its declared bounds."""

    polynomial: Name
    """Name of the column."""
    degree: Annotated[int, Field(ge=1, le=LARGEST)]
    """Largest degree; there is one design column for each degree from 1."""


class SplineBody(Body):
    """A cubic spline of a real or integer column, by B-splines.

    They are on the declared bounds. The first B-spline is left out, because all of them sum to the intercept's column.
    """

    spline: Name
    """Name of the column."""
    df: Annotated[int, Field(ge=LEAST_DF, le=MOST_DF)] | None = None
    """Number of design columns: 3, and one for each knot. Null: as `knots` imply, or 3."""
    knots: Annotated[list[float], Field(max_length=MOST_DF - DEGREE)] | None = None
    """Increasing knots inside the declared bounds, in the column's units. Null: equally spaced in the bounds."""


def _find_kind(value: Any) -> str | None:
    """Return the tag of a feature's kind; the tags are no member names, so pointers leave them out."""
    if isinstance(value, dict):
        return next((f"{kind} term" for kind in _KINDS if kind in value), None)
    kind = type(value).__name__.removesuffix("Body").lower()
    return f"{kind} term" if kind in _KINDS else "a name"


MemberBody = Annotated[
    Annotated[Name, Tag("a name")]
    | Annotated[PolynomialBody, Tag("polynomial term")]
    | Annotated[SplineBody, Tag("spline term")],
    Discriminator(_find_kind),
]
"""The name of a declared column, a polynomial or a spline."""


class InteractionBody(Body):
    """Products of the design columns of 2 to 4 members."""

    interaction: Annotated[list[MemberBody], Field(min_length=LEAST_MEMBERS, max_length=MOST_MEMBERS)]
    """Names of columns: numbers, flags or categories. Or polynomials and splines of numbers."""


class FourierBody(Body):
    """Random Fourier features of some columns; their frequencies follow from a public seed."""

    fourier: Annotated[list[Name], Field(min_length=1, max_length=MOST_COLUMNS)]
    """Names of the columns."""
    units: Annotated[int, Field(ge=LEAST_UNITS, le=MOST_UNITS)]
    """Number of features."""
    length: Annotated[float, Field(gt=0)] = 1.0
    """Length scale of the Gaussian kernel, in design coordinates: declared bounds are -1 and 1."""
    seed: Annotated[int, Field(ge=0, le=MOST_NUMBER)] = 0
    """Public number that selects the frequencies. It has no influence on the noise."""


class LayerBody(Body):
    """One layer of a network: `activation(weights · inputs + bias)`."""

    weights: Annotated[list[list[float]], Field(min_length=1, max_length=MOST_IN_LAYER)]
    """One list for each unit, with one weight for each input."""
    bias: Annotated[list[float], Field(min_length=1, max_length=MOST_IN_LAYER)]
    """One number for each unit."""
    activation: Literal["tanh", "relu-capped", "sigmoid"]
    """Bounded activation; `relu-capped` is `min(max(z, 0), 1)`."""


class NetworkBody(Body):
    """A declared feed-forward map of some columns. Its last layer gives the design columns.

    The weights are public, and must not be fitted to private rows.
    """

    network: Annotated[list[Name], Field(min_length=1, max_length=MOST_INPUTS)]
    """Names of the columns; a category is one input for each of its levels except the first."""
    layers: Annotated[list[LayerBody], Field(min_length=1, max_length=MOST_LAYERS)]
    """The layers in order."""


FeatureBody = Annotated[
    Annotated[Name, Tag("a name")]
    | Annotated[InteractionBody, Tag("interaction term")]
    | Annotated[PolynomialBody, Tag("polynomial term")]
    | Annotated[SplineBody, Tag("spline term")]
    | Annotated[FourierBody, Tag("fourier term")]
    | Annotated[NetworkBody, Tag("network term")],
    Discriminator(_find_kind),
]
"""The name of a declared column, or a term."""


def make_feature(body: FeatureBody) -> Feature:
    """Convert a body to the core's type."""
    return feature_from_json(body if isinstance(body, str) else body.model_dump())
