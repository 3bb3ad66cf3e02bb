"""Declared columns of a table.

Bounds and categories are public. Take them from a codebook or from the question that was asked, never from the rows:
what they would tell about the rows is not accounted for.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

from corevault._arguments import is_number, require_text, what_came
from corevault._check import TableCheck, check_table
from corevault._upload import prepare
from corevault.errors import InvalidArgument, UnexpectedReply, WrongType

_TYPES = ("real", "integer", "categorical", "binary")


@dataclass(frozen=True, slots=True)
class Column:
    """A declared column. With ``impute`` None, a missing value makes its row a null row, which counts for nothing.

    Raises ``InvalidArgument`` for a declaration that does not hold together.
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
                raise WrongType(f"{place}: {name} must be a number; {what_came(value)}.")
        lower, upper = self.lower, self.upper
        if lower is None or upper is None or not lower < upper:
            raise InvalidArgument(f"{place}: lower must be below upper.")
        if self.impute is not None and not lower <= float(self.impute) <= upper:
            raise InvalidArgument(f"{place}: impute must be within the bounds.")

    def _check_categories(self, place: str) -> None:
        if not self.categories:
            raise InvalidArgument(f"{place}: name at least one category.")
        if other := [each for each in self.categories if not isinstance(each, str)]:
            raise WrongType(f"{place}: categories must be texts, such as '1' for the number 1; {what_came(other[0])}.")
        if len(set(self.categories)) < len(self.categories):
            raise InvalidArgument(f"{place}: a category is named twice.")
        if self.impute is not None and self.impute not in self.categories:
            raise InvalidArgument(f"{place}: impute must be one of the categories.")

    @classmethod
    def from_json(cls, body: Mapping[str, Any]) -> Self:
        """The column that the HTTP contract writes as ``body``. Raises ``UnexpectedReply`` for any other object."""
        categories, missing = body.get("categories"), body.get("missing")
        try:
            return cls(
                name=body["name"],
                type=body["type"],
                lower=body.get("lower"),
                upper=body.get("upper"),
                categories=None if categories is None else tuple(categories),
                impute=None if missing is None else missing["impute"],
            )
        except (KeyError, TypeError, InvalidArgument) as error:
            raise UnexpectedReply("The server declares a column that this version cannot read; upgrade it.") from error

    def to_json(self) -> dict[str, Any]:
        """The column as the HTTP contract has it."""
        body: dict[str, Any] = {"name": self.name, "type": self.type}
        if self.lower is not None:
            body |= {"lower": self.lower, "upper": self.upper}
        if self.categories is not None:
            body["categories"] = list(self.categories)
        if self.impute is not None:
            body["missing"] = {"impute": self.impute}
        return body


def real(name: str, lower: float, upper: float, *, impute: float | None = None) -> Column:
    """A real number in ``[lower, upper]``; values outside are clamped."""
    return Column(name, "real", lower, upper, impute=impute)


def integer(name: str, lower: int, upper: int, *, impute: int | None = None) -> Column:
    """A whole number in ``[lower, upper]``; values outside are clamped."""
    return Column(name, "integer", lower, upper, impute=impute)


def categorical(name: str, categories: Sequence[str], *, impute: str | None = None) -> Column:
    """One of ``categories``; the first is the reference, which gets no design column.

    A cell matches the category of the same text, and otherwise the one of the same value: ``1.0`` is ``"1"``.
    """
    if isinstance(categories, str | set | frozenset) or not hasattr(categories, "__iter__"):
        raise WrongType(f"categories must be a list of texts in a fixed order; {what_came(categories)}.")
    return Column(name, "categorical", categories=tuple(categories), impute=impute)


def binary(name: str, *, impute: bool | None = None) -> Column:
    """0 or 1, false or true."""
    return Column(name, "binary", impute=impute)


class Schema:
    """The declared columns of a table, in order.

    Raises ``InvalidArgument`` where a name comes twice, ``WrongType`` for anything but columns.
    """

    def __init__(self, *columns: Column) -> None:
        if other := [column for column in columns if not isinstance(column, Column)]:
            raise WrongType(f"Give columns one by one, as in Schema(real('age', 0, 120)); {what_came(other[0])}.")
        self.columns = columns
        if len(set(self.names)) != len(columns):
            raise InvalidArgument("A column name is declared twice.")

    @property
    def names(self) -> list[str]:
        """The columns' names, fit to select a DataFrame's columns before an upload."""
        return [column.name for column in self.columns]

    def __iter__(self) -> Iterator[Column]:
        return iter(self.columns)

    def __repr__(self) -> str:
        return f"Schema({', '.join(repr(column) for column in self.columns)})"

    def to_json(self) -> list[dict[str, Any]]:
        """The columns as the HTTP contract has them."""
        return [column.to_json() for column in self.columns]

    @classmethod
    def from_json(cls, columns: Sequence[Mapping[str, Any]]) -> Self:
        """The schema that the HTTP contract writes as ``columns``."""
        return cls(*(Column.from_json(column) for column in columns))

    def check(self, table: object) -> TableCheck:
        """Counts the cells of a table that would be missing or clamped. Nothing is sent anywhere.

        ``table`` is a pandas or polars DataFrame, a pyarrow Table, a mapping of column names to lists or arrays, a
        path, bytes, or a file that is open in binary mode (CSV, Parquet or an Arrow stream). A large file is read in
        batches.

        The server tells nobody how many rows are null: a column whose cells are not coded as declared (``M`` for
        ``Male``) makes every row null in silence. The counts come from the rows: do not change the declaration because
        of them, unless it is plainly a mistake.

        Raises ``WrongType`` for any other object, and ``InvalidArgument`` for what cannot be read as a table.
        """
        upload = prepare(table)
        if not upload.repeatable:
            raise WrongType("A stream can be read only once; give a path, a table or a file that can seek.")
        return check_table(self.columns, upload)
