"""Tables in memory: pandas, polars, pyarrow, and mappings of names to columns."""

import csv
import io
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from corevault._arguments import describe, import_extra
from corevault._cells import format_cell
from corevault.errors import InvalidArgument, WrongType

TABLES: Final = (
    "a pandas DataFrame, a polars DataFrame, a pyarrow Table, or a mapping of column names to lists or arrays"
)
_MOST_ROWS = 10_000
_MOST_CELLS = 500_000

Columns = Sequence[Sequence[Any]]


@dataclass(frozen=True, slots=True)
class Table:
    """A table as CSV.

    Each call of ``chunks()`` starts again at the first row. ``index`` has the names of a pandas index.
    """

    names: tuple[str, ...]
    chunks: Callable[[], Iterator[bytes]]
    index: tuple[str, ...] = ()


def count_rows_at_once(width: int) -> int:
    """The number of rows in one chunk in memory, for rows of ``width`` cells."""
    return max(1, min(_MOST_ROWS, _MOST_CELLS // max(width, 1)))


def is_frame(source: object) -> bool:
    """Whether ``source`` is a pandas DataFrame. Does not import pandas."""
    return all(hasattr(source, name) for name in ("iloc", "columns", "to_csv"))


def make_table(source: object) -> Table | None:
    """Convert ``source`` to a table; None if it is not a table.

    Raises ``WrongType`` and ``InvalidArgument`` for a table that cannot be uploaded.
    """
    table = _convert(source)
    if table is not None:
        if not table.names:
            raise InvalidArgument("The table has no columns; pass a table with the declared columns.")
        if len(set(table.names)) < len(table.names):
            raise InvalidArgument("A column name appears twice in the table; name each column once.")
    return table


def _convert(source: object) -> Table | None:
    if is_frame(source):
        return _from_pandas(source)
    if isinstance(source, np.ndarray) and source.dtype.names:
        return _from_mapping({name: source[name] for name in source.dtype.names})
    if hasattr(source, "to_frame"):
        return None  # one column of pandas or polars
    if hasattr(source, "__arrow_c_stream__") or hasattr(source, "__arrow_c_array__"):
        return _from_arrow(source)
    if isinstance(source, Mapping):
        return _from_mapping(source)
    return None


def _from_pandas(frame: Any) -> Table:
    if frame.columns.nlevels > 1:
        raise InvalidArgument("The table's columns have several levels; give each column one name.")

    def chunks() -> Iterator[bytes]:
        yield frame.iloc[:0].to_csv(index=False).encode("utf-8", "surrogatepass")
        step = count_rows_at_once(frame.shape[1])
        for start in range(0, len(frame), step):
            piece = frame.iloc[start : start + step]
            yield piece.to_csv(index=False, header=False).encode("utf-8", "surrogatepass")

    index = tuple(str(name) for name in frame.index.names if name is not None)
    return Table(tuple(str(name) for name in frame.columns), chunks, index)


def _from_arrow(source: Any) -> Table:
    table = make_arrow_table(source)

    def batches() -> Iterator[Columns]:
        for batch in table.to_batches(max_chunksize=count_rows_at_once(table.num_columns)):
            yield [column.to_pylist() for column in batch.columns]

    names = tuple(table.column_names)
    return Table(names, lambda: _as_csv(names, batches()))


def make_arrow_table(source: Any) -> Any:
    """Convert an object with the Arrow PyCapsule interface to a pyarrow Table.

    Raises ``WrongType`` for a single column, and for a reader that can be read only once.
    """
    pa = import_pyarrow("to read polars and Arrow tables")
    if isinstance(source, pa.RecordBatchReader):
        raise WrongType("A RecordBatchReader can be read only once; pass reader.read_all().")
    try:
        return source if isinstance(source, pa.Table) else pa.table(source)
    except (pa.ArrowException, TypeError, ValueError) as error:
        raise WrongType(f"Pass {TABLES}; {describe(source)}, which is not a table.") from error


def _from_mapping(source: Mapping[Any, Any]) -> Table:
    columns = {str(name): as_column(values, str(name)) for name, values in source.items()}
    if len({len(values) for values in columns.values()}) > 1:
        raise InvalidArgument("The columns of the table have different lengths; give each the same number of cells.")
    length = max((len(values) for values in columns.values()), default=0)

    def batches() -> Iterator[Columns]:
        step = count_rows_at_once(len(columns))
        for start in range(0, length, step):
            yield [values[start : start + step] for values in columns.values()]

    names = tuple(str(name) for name in source)
    return Table(names, lambda: _as_csv(names, batches()))


def as_column(values: Any, name: str) -> Any:
    """Convert ``values`` to a list or an array ``(n,)``.

    Raises ``WrongType`` for values without order or length.
    """
    if isinstance(values, list | tuple | range):
        return values
    if isinstance(values, str | bytes | Mapping | set | frozenset) or not hasattr(values, "__len__"):
        raise WrongType(f"The column {name!r} must be a list or a one-dimensional array; {describe(values)}.")
    array = np.asarray(values)
    if array.ndim != 1:
        raise WrongType(f"The column {name!r} must have one dimension; it has {array.ndim}.")
    return array


def _as_csv(names: Sequence[str], batches: Iterable[Columns]) -> Iterator[bytes]:
    yield _write_rows([names])
    for columns in batches:
        yield _write_rows(zip(*([format_cell(cell) for cell in column] for column in columns), strict=True))


def _write_rows(rows: Iterable[Sequence[str]]) -> bytes:
    buffer = io.StringIO(newline="")
    csv.writer(buffer, lineterminator="\n").writerows(rows)
    return buffer.getvalue().encode("utf-8", "surrogatepass")


def import_pyarrow(purpose: str) -> Any:
    """The module pyarrow. Raises ``MissingDependency`` if it is not installed."""
    return import_extra("pyarrow", "arrow", purpose)
