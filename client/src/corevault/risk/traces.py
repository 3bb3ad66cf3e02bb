"""Traces: the places that each person visited, in order of time."""

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from corevault._arguments import describe
from corevault._tables import TABLES, as_column, is_frame, make_arrow_table
from corevault.errors import InvalidArgument, MissingColumn, WrongType

Visits = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Traces:
    """The traces of people.

    ``people`` are their names in the table. ``visits`` are one array ``(v,)`` a person: numbers of places in order of
    time. A number is a place of ``places``. ``skipped`` is the number of rows that lack a person, a place or a time.

    >>> len(Traces(("a",), (np.array([0, 1, 0]),), ("home", "work")))
    1
    """

    people: tuple[Hashable, ...]
    visits: tuple[Visits, ...]
    places: tuple[Hashable, ...]
    skipped: int = 0

    def __len__(self) -> int:
        return len(self.people)

    def keep_longest(self, most: int) -> "Traces":
        """Keep the ``most`` people with most visits; of equal ones, the first.

        >>> rows = {"who": ["a", "b", "b"], "where": [1, 1, 2], "when": [1, 1, 2]}
        >>> read_traces(rows, user="who", place="where", time="when").keep_longest(1).people
        ('b',)
        """
        order = np.argsort([-len(visits) for visits in self.visits], kind="stable")[:most]
        kept = sorted(int(place) for place in order)
        return Traces(
            tuple(self.people[each] for each in kept),
            tuple(self.visits[each] for each in kept),
            self.places,
            self.skipped,
        )


def read_traces(table: object, *, user: str, place: str, time: str) -> Traces:
    """Read traces from a table with one row a visit.

    ``user``, ``place`` and ``time`` name its columns. Times are numbers, dates, or texts that sort by time, such as ISO
    8601. A row is a visit, also if it is at the place of the row before. Rows without one of the three values are left
    out. Visits at the same time stay in the order of the table.

    Raises:
        MissingColumn: the table has no such column.
        InvalidArgument: the times cannot be put into order, or no row is left.
        WrongType: ``table`` is not a table.

    >>> rows = {"who": ["a", "a", "a"], "where": ["home", "work", "work"], "when": [1, 3, 2]}
    >>> read_traces(rows, user="who", place="where", time="when").visits
    (array([0, 1, 1]),)
    """
    columns = [_read_column(table, name) for name in (user, place, time)]
    if len({len(column) for column in columns}) > 1:
        raise InvalidArgument("The columns of the table have different lengths; give each the same number of cells.")
    whole = [row for row in zip(*columns, strict=True) if not any(_is_missing(cell) for cell in row)]
    if not whole:
        raise InvalidArgument(f"No row has a value in each of the columns {user!r}, {place!r} and {time!r}.")
    who, where, when = zip(*whole, strict=True)
    (people, of), (places, at) = _number(who, user), _number(where, place)
    order = np.lexsort((_rank(when, time), of))
    of, at = of[order], at[order]
    ends = np.searchsorted(of, np.arange(1, len(people)))
    return Traces(people, tuple(np.split(at, ends)), places, len(columns[0]) - len(whole))


def _read_column(table: Any, name: str) -> Sequence[Any]:
    """Read a column as a list of Python objects or NumPy scalars."""
    if is_frame(table):
        names = [str(each) for each in table.columns]
    elif isinstance(table, Mapping):
        names = [str(each) for each in table]
    elif hasattr(table, "__arrow_c_stream__") or hasattr(table, "__arrow_c_array__"):
        table = make_arrow_table(table)
        names = list(table.column_names)
    else:
        raise WrongType(f"Pass {TABLES}; {describe(table)}.")
    if names.count(name) != 1:
        number = "no column" if name not in names else "several columns"
        raise MissingColumn(f"The table has {number} {name!r}; its columns are {', '.join(names[:20])}.")
    if is_frame(table):
        return list(table.iloc[:, names.index(name)].to_numpy())
    if isinstance(table, Mapping):
        return list(as_column(list(table.values())[names.index(name)], name))
    return list(table[name].to_pylist())


def _is_missing(cell: Any) -> bool:
    """Whether a cell is empty: None, NaN, NaT or ``pandas.NA``."""
    if cell is None or isinstance(cell, str):
        return not cell
    try:
        return bool(cell != cell)  # noqa: PLR0124  (only missing values differ from themselves)
    except TypeError:  # pandas.NA has no truth value
        return True


def _number(cells: Iterable[Any], name: str) -> tuple[tuple[Hashable, ...], Visits]:
    """Number values in the order of their first row; gives the values, and the number of each cell."""
    numbers: dict[Hashable, int] = {}
    try:
        found = [numbers.setdefault(cell, len(numbers)) for cell in cells]
    except TypeError as error:
        raise WrongType(f"The cells of {name!r} must be numbers or texts.") from error
    return tuple(numbers), np.array(found, dtype=np.int64)


def _rank(cells: Sequence[Any], name: str) -> Visits:
    """Rank times; equal ones have equal ranks."""
    try:
        ranks = {cell: rank for rank, cell in enumerate(sorted(set(cells)))}
    except TypeError as error:
        raise InvalidArgument(
            f"The cells of {name!r} cannot be put into order; give numbers, dates, or texts of one form."
        ) from error
    return np.array([ranks[cell] for cell in cells], dtype=np.int64)
