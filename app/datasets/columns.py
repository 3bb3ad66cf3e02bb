"""Declared columns as they arrive: every type has exactly the fields that belong to it."""

from typing import Annotated, Literal

from pydantic import Field

from app.http.errors.validation_errors import COLUMN_NAME
from app.http.requests.bodies import Body

MAX_COLUMNS = 4096
MAX_CATEGORIES = 10_000
LARGEST_INTEGER = 2**53 - 1  # up to here a double is one whole number: larger ones could make one unit of strangers
LARGEST_REAL = 1e100  # squares, widths and their reciprocals stay finite

ColumnName = Annotated[str, Field(pattern=COLUMN_NAME)]
Category = Annotated[str, Field(min_length=1, max_length=200)]
Whole = Annotated[int, Field(ge=-LARGEST_INTEGER, le=LARGEST_INTEGER)]
Real = Annotated[float, Field(ge=-LARGEST_REAL, le=LARGEST_REAL)]


class MissingInteger(Body):
    impute: Whole


class MissingReal(Body):
    impute: Real


class MissingCategory(Body):
    impute: Category


class MissingBinary(Body):
    impute: bool | Annotated[int, Field(ge=0, le=1)]


class IntegerColumn(Body):
    """Whole numbers within declared bounds."""

    name: ColumnName
    type: Literal["integer"]
    lower: Whole
    upper: Whole
    missing: MissingInteger | None = None


class RealColumn(Body):
    """Real numbers within declared bounds."""

    name: ColumnName
    type: Literal["real"]
    lower: Real
    upper: Real
    missing: MissingReal | None = None


class CategoricalColumn(Body):
    """One of the declared categories; the first is the reference of the design."""

    name: ColumnName
    type: Literal["categorical"]
    categories: Annotated[list[Category], Field(min_length=1, max_length=MAX_CATEGORIES)]
    missing: MissingCategory | None = None


class BinaryColumn(Body):
    """0 or 1."""

    name: ColumnName
    type: Literal["binary"]
    missing: MissingBinary | None = None


ColumnBody = Annotated[IntegerColumn | RealColumn | CategoricalColumn | BinaryColumn, Field(discriminator="type")]
