"""Declared columns of a table.

Bounds and categories are public. Take them from a codebook or from the wording of a survey's questions, never from the
rows. The budget does not account for information about rows in a declaration.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from corevault._arguments import describe, import_pandas, is_number, require_mapping, require_text, require_whole_number
from corevault._check import TableCheck, check_table
from corevault._show import Table
from corevault._spread import spread_points
from corevault._upload import prepare
from corevault.errors import InvalidArgument, MissingDependency, UnexpectedReply, WrongType

_TYPES = ("real", "integer", "categorical", "binary")


@dataclass(frozen=True, slots=True)
class Column:
    """A declared column. Without ``impute``, a missing value makes its row a null row.

    A null row contributes zero to every query. Raises ``InvalidArgument`` for an inconsistent declaration.

    >>> Column("age", "integer", 17, 90, impute=38)
    Column(name='age', type='integer', lower=17, upper=90, categories=None, impute=38)
    """

    name: str
    type: str
    lower: float | None = None
    upper: float | None = None
    categories: tuple[str, ...] | None = None
    impute: float | str | bool | None = None

    def __post_init__(self) -> None:
        require_text(self.name, "A column's name")
        place = f"Column {self.name!r}"
        if self.type not in _TYPES:
            raise InvalidArgument(f"{place}: type must be one of {', '.join(_TYPES)}.")
        if self.type in {"real", "integer"}:
            self._check_bounds(place)
        elif self.type == "categorical":
            self._check_categories(place)
        elif self.impute is not None and (isinstance(self.impute, str) or self.impute not in (0, 1)):
            raise InvalidArgument(f"{place}: impute must be True or False.")

    def _check_bounds(self, place: str) -> None:
        for value, name in ((self.lower, "lower"), (self.upper, "upper"), (self.impute, "impute")):
            if not (is_number(value) or (name == "impute" and value is None)):
                raise WrongType(f"{place}: {name} must be a number; {describe(value)}.")
        lower, upper = self.lower, self.upper
        if lower is None or upper is None or not lower < upper:
            raise InvalidArgument(f"{place}: lower must be below upper.")
        if self.impute is not None and not lower <= float(self.impute) <= upper:
            raise InvalidArgument(f"{place}: impute must be within the bounds.")

    def _check_categories(self, place: str) -> None:
        if not self.categories:
            raise InvalidArgument(f"{place}: declare at least one category.")
        if other := [each for each in self.categories if not isinstance(each, str)]:
            raise WrongType(f"{place}: categories must be texts, such as '1' for the number 1; {describe(other[0])}.")
        if len(set(self.categories)) < len(self.categories):
            raise InvalidArgument(f"{place}: a category is declared twice; remove one.")
        if self.impute is not None and self.impute not in self.categories:
            raise InvalidArgument(f"{place}: impute must be one of the categories.")

    @classmethod
    def from_json(cls, body: Mapping[str, Any]) -> Self:
        """The column from its JSON form. Raises ``UnexpectedReply`` for a form that this version does not support.

        >>> Column.from_json({"name": "sick", "type": "binary"})
        Column(name='sick', type='binary', lower=None, upper=None, categories=None, impute=None)
        """
        try:
            categories, missing = body.get("categories"), body.get("missing")
            return cls(
                name=body["name"],
                type=body["type"],
                lower=body.get("lower"),
                upper=body.get("upper"),
                categories=None if categories is None else tuple(categories),
                impute=None if missing is None else missing["impute"],
            )
        except (KeyError, TypeError, AttributeError, InvalidArgument) as error:
            raise UnexpectedReply(
                "The server declares a column that this version cannot read; upgrade corevault."
            ) from error

    def to_json(self) -> dict[str, Any]:
        """The column in the JSON form of the HTTP contract.

        >>> integer("age", 17, 90, impute=38).to_json()
        {'name': 'age', 'type': 'integer', 'lower': 17, 'upper': 90, 'missing': {'impute': 38}}
        """
        body: dict[str, Any] = {"name": self.name, "type": self.type}
        if self.lower is not None:
            body |= {"lower": self.lower, "upper": self.upper}
        if self.categories is not None:
            body["categories"] = list(self.categories)
        if self.impute is not None:
            body["missing"] = {"impute": self.impute}
        return body


def real(name: str, lower: float, upper: float, *, impute: float | None = None) -> Column:
    """A column of real numbers in ``[lower, upper]``; values outside are clamped.

    >>> real("hours", 1, 99, impute=40.0).impute
    40.0
    """
    return Column(name, "real", lower, upper, impute=impute)


def integer(name: str, lower: int, upper: int, *, impute: int | None = None) -> Column:
    """A column of whole numbers in ``[lower, upper]``; values outside are clamped.

    >>> integer("age", 17, 90).upper
    90
    """
    return Column(name, "integer", lower, upper, impute=impute)


def categorical(name: str, categories: Sequence[str], *, impute: str | None = None) -> Column:
    """A column of ``categories``. The first one is the reference category, without a design column.

    A cell matches the category with the same text, or else the category with the same value: ``1.0`` matches ``"1"``.

    >>> categorical("sex", ["Female", "Male"]).categories
    ('Female', 'Male')
    """
    if isinstance(categories, str | set | frozenset) or not hasattr(categories, "__iter__"):
        raise WrongType(f"categories must be a list of texts in a fixed order; {describe(categories)}.")
    return Column(name, "categorical", categories=tuple(categories), impute=impute)


def binary(name: str, *, impute: bool | None = None) -> Column:
    """A column of 0 and 1, or false and true.

    >>> binary("sick").type
    'binary'
    """
    return Column(name, "binary", impute=impute)


def _fill(column: Column, places: NDArray[np.float64]) -> list[Any]:
    """Make cells of a column. Each of ``places``, a number in (0, 1), selects one value."""
    if column.categories is not None:
        return [column.categories[int(place * len(column.categories))] for place in places]
    if column.lower is None or column.upper is None:
        return [bool(place < 0.5) for place in places]
    if column.type == "integer":
        first, last = math.ceil(column.lower), math.floor(column.upper)
        return [min(first + int(place * (last - first + 1)), last) for place in places]
    values: list[Any] = (column.lower + places * (column.upper - column.lower)).tolist()
    return values


def _write_column(column: Column) -> str:
    bounds = () if column.lower is None else (f"{column.lower:g}", f"{column.upper:g}")
    categories = () if column.categories is None else (repr(list(column.categories)),)
    impute = () if column.impute is None else (f"impute={column.impute!r}",)
    return f"{column.type}({', '.join((repr(column.name), *bounds, *categories, *impute))})"


def _describe(column: Column) -> dict[str, object]:
    domain = column.categories if column.lower is None else f"{column.lower:g} to {column.upper:g}"
    return {"column": column.name, "type": column.type, "domain": domain, "impute": column.impute}


class Schema:
    """The declared columns of a table, in order.

    Raises ``InvalidArgument`` if a name appears twice, and ``WrongType`` for anything but columns.

    >>> Schema(integer("age", 17, 90), categorical("sex", ["F", "M"]), binary("sick"))
    Schema(integer('age', 17, 90), categorical('sex', ['F', 'M']), binary('sick'))
    """

    def __init__(self, *columns: Column) -> None:
        if other := [column for column in columns if not isinstance(column, Column)]:
            raise WrongType(f"Pass columns one by one, as in Schema(real('age', 0, 120)); {describe(other[0])}.")
        self.columns = columns
        if len(set(self.names)) != len(columns):
            raise InvalidArgument("A column name is declared twice; rename or remove one of the columns.")

    @property
    def names(self) -> list[str]:
        """The names of the columns, in order, as for ``frame[schema.names]`` before an upload.

        >>> Schema(integer("age", 17, 90), binary("sick")).names
        ['age', 'sick']
        """
        return [column.name for column in self.columns]

    def __iter__(self) -> Iterator[Column]:
        return iter(self.columns)

    def __repr__(self) -> str:
        return f"Schema({', '.join(_write_column(column) for column in self.columns)})"

    def _repr_html_(self) -> str:
        return Table([_describe(column) for column in self.columns])._repr_html_()

    def to_json(self) -> list[dict[str, Any]]:
        """The columns in the JSON form of the HTTP contract.

        >>> Schema(binary("sick")).to_json()
        [{'name': 'sick', 'type': 'binary'}]
        """
        return [column.to_json() for column in self.columns]

    @classmethod
    def from_json(cls, columns: Sequence[Mapping[str, Any]]) -> Self:
        """The schema from its JSON form.

        >>> Schema.from_json([{"name": "sick", "type": "binary"}])
        Schema(binary('sick'))
        """
        return cls(*(Column.from_json(column) for column in columns))

    def dummy(self, count: int) -> Any:
        """``count`` rows that fit the declaration, to try code before there is a release.

        The rows are computed from the declaration alone, and are always the same. The values of a column are spread
        evenly over its bounds or categories, and columns are independent. So results of a model on these rows mean
        nothing. The table is a DataFrame, or a mapping of names to lists if pandas is not installed.

        >>> Schema(integer("age", 17, 90), categorical("sex", ["F", "M"])).dummy(3).values.tolist()
        [[35, 'F'], [17, 'M'], [73, 'F']]

        Raises ``InvalidArgument`` for a negative ``count``.
        """
        require_whole_number(count, "count", lower=0)
        points = spread_points(count, len(self.columns))
        table = {column.name: _fill(column, points[:, place]) for place, column in enumerate(self.columns)}
        try:
            return import_pandas().DataFrame(table)
        except MissingDependency:
            return table

    def check(self, table: object, *, privacy_unit: Mapping[str, Any] | None = None) -> TableCheck:
        """Counts the cells that would be missing or clamped, on this machine.

        ``table`` is one of these:

        - a pandas or polars DataFrame, a pyarrow Table, or a mapping of column names to lists or arrays;
        - CSV, Parquet or an Arrow stream, as a path, as bytes, or as a file that is open in binary mode.

        A large file is read in batches. Pass the ``privacy_unit`` of the dataset if it is a column: a value outside
        that column's bounds is not clamped, and counts as missing.

        Nothing is sent. The server does not report the number of null rows. If the cells of a column are not coded as
        declared (``M`` for ``Male``), every row becomes null without a message. The counts depend on the rows. So do
        not change the declaration because of them, except to correct an obvious mistake.

        Raises ``WrongType`` for any other object, and ``InvalidArgument`` if it cannot be read as a table or the unit's
        column is not declared.

        >>> found = Schema(integer("age", 17, 90)).check({"age": [30, 120, None]})
        >>> found.null_rows, found.columns["age"].clamped
        (1, 1)
        """
        unit = None if privacy_unit is None else require_mapping(privacy_unit, "privacy_unit").get("column")
        if unit is not None and unit not in self.names:
            raise InvalidArgument(f"privacy_unit must name one of the declared columns ({', '.join(self.names)}).")
        upload = prepare(table)
        if not upload.repeatable:
            raise WrongType("A stream can be read only once; pass a path, a table or a file that can seek.")
        return check_table(self.columns, upload, unit)
