"""Objects that are often mistaken for a table, with the right argument for each."""

from collections.abc import Callable, Mapping
from typing import Any, Final

_FRAME = "pass a DataFrame"


def _has(*names: str) -> Callable[[Any], bool]:
    return lambda source: all(callable(getattr(source, name, None)) for name in names)


def _is_array(source: Any) -> bool:
    return hasattr(source, "dtype") and hasattr(source, "ndim") and hasattr(source, "tolist")


def _has_rows(source: Any) -> bool:
    return isinstance(source, list | tuple) and bool(source) and isinstance(source[0], Mapping | list | tuple)


def _is_description(source: Any) -> bool:
    return type(source).__module__.partition(".")[0] == "corevault"


_HINTS: Final[tuple[tuple[Callable[[Any], bool], str], ...]] = (
    (_is_description, "This object is not a table of rows; pass the table itself, such as a path or a DataFrame."),
    (_has("collect", "lazy"), "This frame is lazy; pass frame.collect()."),
    (_has("collect", "explain"), "This frame is lazy; pass frame.collect()."),
    (_has("toPandas"), "This frame is on a cluster; pass frame.toPandas()."),
    (_has("execute"), f"This is a database connection or cursor; read it with pandas.read_sql, and {_FRAME}."),
    (_has("tocsr", "toarray"), "A sparse matrix has no column names; pass a mapping of column names to arrays."),
    (_has("to_frame"), "This is one column; pass series.to_frame(), or a mapping of column names to columns."),
    (_has("agg", "get_group"), f"This is a grouped frame; {_FRAME}."),
    (_is_array, "An array has no column names; pass a mapping such as {'age': array[:, 0]}."),
    (_has_rows, "A list of rows is not accepted; pass pandas.DataFrame(rows), or a mapping of names to columns."),
)


def find_hint(source: object) -> str | None:
    """A sentence for an object that is not a table; None if there is no special one."""
    return next((sentence for applies, sentence in _HINTS if applies(source)), None)
