"""Request bodies of declared columns, one class for each column type."""

from typing import Annotated, Literal

from pydantic import Field

from app.http.errors.validation_errors import COLUMN_NAME
from app.http.requests.bodies import Body

MAX_COLUMNS = 4096
MAX_CATEGORIES = 10_000
LARGEST_INTEGER = (
    2**53 - 1
)  # doubles represent integers exactly up to here; above it, ids of two people could become one unit
LARGEST_REAL = 1e100  # squares, widths and their reciprocals stay finite

ColumnName = Annotated[str, Field(pattern=COLUMN_NAME)]
Category = Annotated[str, Field(min_length=1, max_length=200)]
Whole = Annotated[int, Field(ge=-LARGEST_INTEGER, le=LARGEST_INTEGER)]
Real = Annotated[float, Field(ge=-LARGEST_REAL, le=LARGEST_REAL)]


class MissingInteger(Body):
    """Replacement for missing cells of a column."""

    impute: Whole
    """Value that replaces each missing cell."""


class MissingReal(Body):
    """Replacement for missing cells of a column."""

    impute: Real
    """Value that replaces each missing cell."""


class MissingCategory(Body):
    """Replacement for missing cells of a column."""

    impute: Category
    """Value that replaces each missing cell."""


class MissingBinary(Body):
    """Replacement for missing cells of a column."""

    impute: bool | Annotated[int, Field(ge=0, le=1)]
    """Value that replaces each missing cell."""


class IntegerColumn(Body):
    """Whole numbers within declared bounds."""

    name: ColumnName
    """Name of the column in the file's header."""
    type: Literal["integer"]
    """Type of the column."""
    lower: Whole
    """Declared lower bound; smaller values are clamped to it."""
    upper: Whole
    """Declared upper bound; larger values are clamped to it."""
    missing: MissingInteger | None = None
    """Replacement of missing cells; null: a missing cell makes the row null."""


class RealColumn(Body):
    """Real numbers within declared bounds."""

    name: ColumnName
    """Name of the column in the file's header."""
    type: Literal["real"]
    """Type of the column."""
    lower: Real
    """Declared lower bound; smaller values are clamped to it."""
    upper: Real
    """Declared upper bound; larger values are clamped to it."""
    missing: MissingReal | None = None
    """Replacement of missing cells; null: a missing cell makes the row null."""


class CategoricalColumn(Body):
    """One of the declared categories; the first is the reference of the design."""

    name: ColumnName
    """Name of the column in the file's header."""
    type: Literal["categorical"]
    """Type of the column."""
    categories: Annotated[list[Category], Field(min_length=1, max_length=MAX_CATEGORIES)]
    """Declared categories. The first is the reference and has no design column."""
    missing: MissingCategory | None = None
    """Replacement of missing cells; null: a missing cell makes the row null."""


class BinaryColumn(Body):
    """0 or 1."""

    name: ColumnName
    """Name of the column in the file's header."""
    type: Literal["binary"]
    """Type of the column."""
    missing: MissingBinary | None = None
    """Replacement of missing cells; null: a missing cell makes the row null."""


ColumnBody = Annotated[IntegerColumn | RealColumn | CategoricalColumn | BinaryColumn, Field(discriminator="type")]
