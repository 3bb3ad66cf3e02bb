"""Reading of an upload's rows in batches, by the rules of the server. Memory is bounded."""

import csv
import io
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import chain, islice
from typing import Any, BinaryIO

import numpy as np

from corevault._cells import Cells, format_cell
from corevault._formats import ARROW_STREAM, PARQUET
from corevault._tables import count_rows_at_once, import_pyarrow
from corevault._upload import Upload
from corevault.errors import InvalidArgument

_END = "\0end of the table"
"""The only cell of a line that is appended to the file to detect an unclosed quotation mark."""
_END_LINE = f'"{_END}"'
"""That line. If the file ends inside a quoted cell, the line's quotation marks are a part of its last row.

Then the reader does not return it as a row. Without the quotation marks it would, for a file whose last cell begins
with one and has no other text.
"""


@dataclass(frozen=True, slots=True)
class Batch:
    """Some rows of a table.

    ``ragged`` counts rows with too few or too many cells. ``columns`` hold the cells of the other rows.
    """

    ragged: int
    columns: Sequence[Cells]


@dataclass(frozen=True, slots=True)
class Rows:
    """The column ``names`` of a table, and its ``batches`` in that order.

    ``unread`` maps each column whose Arrow type the server does not read to the name of that type.
    """

    names: tuple[str, ...]
    batches: Iterator[Batch]
    unread: Mapping[str, str] = field(default_factory=dict)


@contextmanager
def open_rows(upload: Upload) -> Iterator[Rows]:
    """Opens ``upload`` and gives its rows, from the first one.

    Raises ``InvalidArgument`` if the file cannot be read, and ``MissingDependency`` if a Parquet or Arrow file needs
    pyarrow and it is not installed. Iterating over ``batches`` may raise ``InvalidArgument`` too.
    """
    base = upload.media_type.partition(";")[0].strip().lower()
    if base == PARQUET:
        assert upload.open_file is not None, "only sources that can be read twice are read here"
        with upload.open_file() as file:
            yield _parquet_rows(file)
    else:
        with _Stream(upload.chunks()) as raw:
            yield (_arrow_rows if base == ARROW_STREAM else _csv_rows)(io.BufferedReader(raw))


def _csv_rows(file: io.BufferedReader) -> Rows:
    text = io.TextIOWrapper(file, encoding="utf-8-sig", errors="surrogateescape", newline="")
    reader = csv.reader(chain(text, [_END_LINE]))
    with _csv_faults():
        header = next((row for row in reader if row), [_END])
    names = () if header == [_END] else tuple(name.strip() for name in header)
    return Rows(names, _csv_batches(reader, len(names)) if names else iter(()))


def _csv_batches(reader: Iterator[list[str]], width: int) -> Iterator[Batch]:
    ended = False
    while rows := _next_rows(reader, count_rows_at_once(width)):
        ended = rows[-1] == [_END]
        present = [row for row in (rows[:-1] if ended else rows) if row]
        whole = [row for row in present if len(row) == width]
        yield Batch(len(present) - len(whole), list(zip(*whole, strict=True)) or [()] * width)
    if not ended:
        raise InvalidArgument("The CSV ends inside a quoted cell; add the missing quotation mark.")


def _next_rows(reader: Iterator[list[str]], count: int) -> list[list[str]]:
    with _csv_faults():
        return list(islice(reader, count))


@contextmanager
def _csv_faults() -> Iterator[None]:
    try:
        yield
    except csv.Error as error:
        raise InvalidArgument(
            "The CSV cannot be read: a cell is longer than 131,072 characters. Check for an unclosed quotation mark."
        ) from error


class _Stream(io.RawIOBase):
    """Chunks of bytes as a file object that can be read once."""

    def __init__(self, chunks: Iterator[bytes]) -> None:
        super().__init__()
        self._chunks = chunks
        self._rest = memoryview(b"")

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        if not self._rest:
            self._rest = memoryview(next((chunk for chunk in self._chunks if chunk), b""))
        taken = self._rest[: len(buffer)]
        buffer[: len(taken)] = taken
        self._rest = self._rest[len(taken) :]
        return len(taken)


def _parquet_rows(file: BinaryIO) -> Rows:
    pa = import_pyarrow("to check a Parquet file")
    import pyarrow.parquet as pq  # noqa: PLC0415 - an extra

    with _file_faults(pa):
        parquet = pq.ParquetFile(file, pre_buffer=False)
        batches = parquet.iter_batches(count_rows_at_once(len(parquet.schema_arrow.names)), use_threads=False)
        return Rows(*_describe(pa, parquet.schema_arrow, batches))


def _arrow_rows(file: io.BufferedReader) -> Rows:
    pa = import_pyarrow("to check an Arrow stream")
    import pyarrow.ipc  # noqa: PLC0415 - an extra

    with _file_faults(pa):
        reader = pyarrow.ipc.open_stream(file)
        return Rows(*_describe(pa, reader.schema, iter(reader)))


def _describe(pa: Any, schema: Any, batches: Iterator[Any]) -> tuple[tuple[str, ...], Iterator[Batch], dict[str, str]]:
    unread = {each.name: str(each.type) for each in schema if not _is_read(pa.types, each.type)}
    return tuple(schema.names), _arrow_batches(pa, batches), unread


def _is_read(types: Any, kind: Any) -> bool:
    """Whether the server reads cells of this Arrow type."""
    if types.is_dictionary(kind):
        kind = kind.value_type
    numeric = (types.is_null, types.is_boolean, types.is_integer, types.is_floating, types.is_decimal)
    textual = (types.is_string, types.is_large_string, types.is_string_view)
    binary = (types.is_binary, types.is_large_binary, types.is_binary_view)
    return any(test(kind) for test in (*numeric, *textual, *binary))


def _arrow_batches(pa: Any, batches: Iterator[Any]) -> Iterator[Batch]:
    while True:
        with _file_faults(pa):
            batch = next(batches, None)
            if batch is None:
                return
        step = count_rows_at_once(batch.num_columns)
        for start in range(0, batch.num_rows, step):
            with _file_faults(pa):
                cells = [_arrow_cells(pa, column) for column in batch.slice(start, step).columns]
            yield Batch(0, cells)


def _arrow_cells(pa: Any, column: Any) -> Cells:
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    kind = column.type
    if pa.types.is_floating(kind) or pa.types.is_boolean(kind) or pa.types.is_decimal(kind):
        numbers: Cells = np.array(column.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False), dtype=float)
        return numbers
    return [format_cell(cell) for cell in column.to_pylist()]


@contextmanager
def _file_faults(pa: Any) -> Iterator[None]:
    try:
        yield
    except (pa.ArrowException, OSError, ValueError, TypeError) as error:
        raise InvalidArgument(
            "The file cannot be read: it is damaged, incomplete or encrypted, or media_type is wrong."
        ) from error
