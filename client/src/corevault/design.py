"""The design of a release, and the design matrix of new rows."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from corevault._arguments import describe
from corevault._cells import Cells, make_cells, parse_values
from corevault._stated_columns import find_undeclared_codes, parse_undeclared_numbers, read_column
from corevault._tables import TABLES, as_column, is_frame, make_arrow_table
from corevault._transforms import KINDS, compute_column, list_inputs, share_members, write_key
from corevault.errors import InvalidArgument, MissingColumn, WrongType
from corevault.replies._decode import Reply
from corevault.replies.dataset import Dataset
from corevault.schema import Column, Schema

Array = NDArray[np.float64]


class Table(Protocol):
    """A table with columns by name, such as a DataFrame or a mapping."""

    def __getitem__(self, name: str, /) -> Any:
        """The column, shape (n,)."""


@dataclass(frozen=True, kw_only=True, repr=False)
class DesignColumn(Reply):
    """One design column: its ``transform``, and the declared column that is its ``source``, if it has one.

    A column of a term has the term's name in ``term``. If the term reads several columns, they are its ``sources``.

    >>> example().design[0].source
    'age'
    """

    name: str
    transform: Mapping[str, Any]
    source: str | None = None
    term: str | None = None
    sources: tuple[str, ...] = ()

    @property
    def kind(self) -> str:
        """``constant``, ``affine`` or ``indicator``, or that of a term.

        Terms have ``product``, ``legendre``, ``b-spline``, ``cosine`` or ``network``. Raises ``InvalidArgument`` for
        any other kind.

        >>> example().design[-1].kind
        'constant'
        """
        kind = self.transform.get("kind")
        if kind == "constant" or (kind in KINDS and (self.source is not None or self.sources)):
            return str(kind)
        raise InvalidArgument(f"This version cannot compute the design column {self.name!r}; upgrade corevault.")


def design_matrix(
    design: Sequence[DesignColumn],
    table: Table,
    *,
    schema: Schema | Dataset | None = None,
    null_rows: Literal["refuse", "nan"] = "refuse",
) -> Array:
    """The design matrix of new rows, ``(n, p)``, in the design's order of columns.

    ``table`` is a pandas or polars DataFrame, a pyarrow Table or a mapping of names to columns. Its cells are read by
    the server's rules. Values outside the declared bounds are clamped, spaces around a cell do not count, and a number
    matches the category of the same value.

    ``schema`` is the declared schema or its ``Dataset``. With it, a missing cell takes the declared impute value: a
    cell that is empty, of another type or of an undeclared category. Without an impute value its row is null.
    ``null_rows`` selects an error or rows of NaN for null rows.

    Without ``schema``, nothing is imputed. The design states the type of each column and all its categories, so cells
    are read as with a schema without impute values. Releases of version 0.1.0 state neither. A cell that their design
    does not decide is an error: a label that it does not name, or a number that its column may not allow.

    Raises:
        InvalidArgument: a row is null, the design does not decide a cell, or the schema is of another table.
        MissingColumn: the table lacks a column.
        WrongType: ``table`` is not a table.

    >>> rows = {"age": [30, 60], "smoker": [0, 1], "sex": ["male", "female"]}
    >>> design_matrix(example().design, rows).shape
    (2, 4)
    """
    if null_rows not in ("refuse", "nan"):
        raise InvalidArgument("null_rows must be 'refuse' or 'nan'.")
    declared = _columns_of(schema)
    transforms = share_members([(column.name, column.transform) for column in design])
    given = [
        [] if column.kind == "constant" else list_inputs(column.source, transform)
        for column, transform in zip(design, transforms, strict=True)
    ]
    inputs = {write_key(each): each for members in given for each in members}
    sources = dict.fromkeys(str(each["source"]) for each in inputs.values())
    if not sources:
        raise InvalidArgument("The design has no column that comes from the table, so its rows cannot be counted.")
    texts = {str(each["source"]) for each in inputs.values() if each["kind"] == "indicator"}
    cells = {name: make_cells(each, as_text=name in texts) for name, each in _columns(table, list(sources)).items()}
    coordinates = dict[str, Array]()
    for name in sources:
        own = {key: each for key, each in inputs.items() if each["source"] == name}
        stated = [DesignColumn(name=name, source=name, transform=each) for each in own.values()]
        column = None if declared is None else _declaration(declared, name)
        coordinates |= zip(own, _encode(stated, cells[name], column, null_rows).T, strict=True)
    matrix = np.ones((len(next(iter(cells.values()))), len(design)))
    for place, (transform, members) in enumerate(zip(transforms, given, strict=True)):
        if members:
            matrix[:, place] = compute_column(transform, np.column_stack([coordinates[write_key(e)] for e in members]))
        else:
            matrix[:, place] = float(transform["value"])
    matrix[np.isnan(matrix).any(axis=1)] = np.nan
    return matrix


def _columns_of(schema: object) -> Mapping[str, Column] | None:
    if schema is None:
        return None
    if isinstance(schema, Dataset):
        schema = schema.schema
    if not isinstance(schema, Schema):
        raise WrongType(f"schema must be a Schema or a Dataset; {describe(schema)}.")
    return {column.name: column for column in schema}


def _declaration(declared: Mapping[str, Column], name: str) -> Column:
    if name not in declared:
        raise InvalidArgument(f"The schema does not declare {name!r}, from which the design is computed.")
    return declared[name]


def _encode(design: Sequence[DesignColumn], cells: Cells, column: Column | None, null_rows: str) -> Array:
    """The design columns ``(n, k)`` of one source; NaN for a missing cell."""
    is_category = design[0].kind == "indicator"
    if column is not None and is_category is not (column.categories is not None):
        raise InvalidArgument(
            f"The schema declares {column.name!r} with another type than the design has; pass the schema of the "
            "release's dataset."
        )
    encoded = (_indicators if is_category else _scale_cells)(design, cells, column or read_column(design))
    if null_rows == "refuse" and np.isnan(encoded).any():
        hint = "Impute or drop them" if column is not None else "Impute or drop them, or pass the schema"
        raise InvalidArgument(
            f"Column {design[0].source!r} has missing values: cells that are empty or do not fit the declaration. "
            f"{hint}, or pass null_rows='nan' for rows of NaN."
        )
    return encoded


def _scale_cells(design: Sequence[DesignColumn], cells: Cells, column: Column | None) -> Array:
    scales = [(float(each.transform["center"]), float(each.transform["scale"])) for each in design]
    if column is None:
        values = parse_undeclared_numbers(design[0].source, scales[0], cells)
    else:
        values = _impute(column, parse_values(column, cells))
    if design[0].transform.get("constant"):
        return 0.0 * values[:, None]  # all numbers are clamped to the only value
    scaled: Array = np.column_stack([np.clip((values - center) / scale, -1.0, 1.0) for center, scale in scales])
    return scaled


def _indicators(design: Sequence[DesignColumn], cells: Cells, column: Column | None) -> Array:
    named = [str(each.transform["value"]) for each in design]
    if column is None:
        codes, categories = find_undeclared_codes(design[0].source, named, cells), tuple(named)
    else:
        assert column.categories is not None, "checked by the caller"
        categories = column.categories
        if not set(named) <= set(categories):
            raise InvalidArgument(
                f"The schema declares other categories of {column.name!r} than the design has; pass the schema of the "
                "release's dataset."
            )
        codes = _impute(column, parse_values(column, cells))
    wanted = [float(categories.index(value)) for value in named]
    indicators: Array = (codes[:, None] == np.array(wanted)).astype(np.float64)
    indicators[np.isnan(codes)] = np.nan
    return indicators


def _impute(column: Column, values: Array) -> Array:
    if column.impute is None:
        return values
    impute = float(column.impute) if column.categories is None else float(column.categories.index(str(column.impute)))
    return np.where(np.isnan(values), impute, values)


def _columns(table: Any, names: Sequence[str]) -> dict[str, NDArray[Any]]:
    """The columns ``names`` as arrays ``(n,)`` of one length."""
    present = _names(table)
    if present is None and hasattr(table, "__arrow_c_stream__"):
        table = make_arrow_table(table)
        present = table.column_names
    if present is None:
        raise WrongType(f"Pass {TABLES}; {describe(table)}.")
    for name in names:
        if name not in present:
            raise MissingColumn(f"The table has no column {name!r}, from which the design is computed.")
        if present.count(name) > 1:
            raise InvalidArgument(f"The column {name!r} appears twice in the table; name each column once.")
    columns = {name: _array(table[name], name) for name in names}
    if len({len(values) for values in columns.values()}) > 1:
        raise InvalidArgument("The columns of the table have different lengths; give each the same number of cells.")
    return columns


def _names(table: Any) -> list[Any] | None:
    """The names of a table's columns; None if it is not a table."""
    if isinstance(table, Mapping):
        return list(table)
    if isinstance(getattr(table, "column_names", None), list):  # pyarrow
        return list(table.column_names)
    if is_frame(table) or (hasattr(table, "__arrow_c_stream__") and hasattr(table, "columns")):
        return list(table.columns)
    fields = getattr(getattr(table, "dtype", None), "names", None)  # a structured array
    return None if fields is None else list(fields)


def _array(values: Any, name: str) -> NDArray[Any]:
    column = as_column(values, name)
    array = np.asarray(column, dtype=object) if isinstance(column, list | tuple) else np.asarray(column)
    if array.ndim != 1:
        raise WrongType(f"The column {name!r} must have one dimension; it has {array.ndim}.")
    return array
