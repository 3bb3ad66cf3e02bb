"""Converts a file of any accepted media type to stored values, batch by batch."""

import io
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from app.inference.core.facts import Column
from workers.enclave.arrow_source import read_arrow, read_parquet
from workers.enclave.cells import make_null_rows, parse_cells, parse_units
from workers.enclave.csv_source import read_csv
from workers.enclave.faults import FileFault
from workers.enclave.sources import Caps, Meter, Plaintext, RawRows

Values = dict[str, NDArray[Any]]

SOURCES = {
    "text/csv": read_csv,
    "application/vnd.apache.parquet": read_parquet,
    "application/vnd.apache.arrow.stream": read_arrow,
}


def parse(source: Plaintext, media_type: str, columns: Sequence[Column], slots: int, caps: Caps) -> Iterator[Values]:
    """Yield batches of stored values, with null rows in their places.

    See :func:`workers.enclave.cells.parse_cells`.

    Args:
        source: the plaintext, seekable.
        media_type: a key of ``SOURCES``.
        columns: the declared columns.
        slots: the most rows of the table; the privacy unit is the row.
        caps: the most that is read of any file.

    Raises:
        FileFault: for a fault of the file as a whole, never for one of a row.
    """
    for rows in _read_raw(source, media_type, columns, slots, caps):
        yield _parse_rows(rows, columns)


def parse_by_unit(
    source: Plaintext, media_type: str, columns: Sequence[Column], unit: Column, caps: Caps
) -> Iterator[tuple[NDArray[np.float64], Values]]:
    """Yield batches of units, ``(n,)``, and of stored values without the unit's column.

    Rows that name no unit are left out, because they belong to no one. See :func:`parse`.
    """
    stored = [column for column in columns if column != unit]
    for rows in _read_raw(source, media_type, columns, None, caps):
        count = rows.length if rows.places is None else len(rows.places)
        if not count:
            continue
        units = parse_units(unit, rows.cells[unit.name])
        has_unit = ~np.isnan(units)
        values = parse_cells(stored, rows.cells, count)
        yield units[has_unit], {name: array[has_unit] for name, array in values.items()}


def _read_raw(
    source: Plaintext, media_type: str, columns: Sequence[Column], slots: int | None, caps: Caps
) -> Iterator[RawRows]:
    size = source.seek(0, io.SEEK_END)
    if size == 0:
        raise FileFault("empty")
    source.seek(0)
    yield from SOURCES[media_type](source, columns, Meter(slots, caps.of(size)))


def _parse_rows(rows: RawRows, columns: Sequence[Column]) -> Values:
    if rows.places is None:
        return parse_cells(columns, rows.cells, rows.length)
    if not len(rows.places):
        return make_null_rows(columns, rows.length)
    parsed = parse_cells(columns, rows.cells, len(rows.places))
    if len(rows.places) == rows.length:
        return parsed
    return {name: _scatter(values, rows.places, rows.length) for name, values in parsed.items()}


def _scatter(values: NDArray[Any], places: NDArray[np.int64], length: int) -> NDArray[Any]:
    whole = np.zeros(length, dtype=values.dtype)
    whole[places] = values
    return whole
