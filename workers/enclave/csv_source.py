"""Reads CSV files as batches of rows.

A row with a wrong number of cells (a ragged row) becomes a null row in its place. Blank lines are not rows. The bytes
are first made valid UTF-8: each invalid sequence becomes a NUL, which no number and no declared category contains. So a
bad byte makes only its cell missing. A row ``END``, too wide for any table, is appended. If the parser does not report
it, the file ends inside a quoted cell, which has swallowed the rows before it.
"""

import codecs
import csv
import io
from array import array
from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.csv
from numpy.typing import NDArray

from app.inference.core.facts import Column
from workers.enclave.faults import FileFault, Reason
from workers.enclave.sources import Meter, Plaintext, RawRows, check_header, translate_library_errors

BLOCK_BYTES = 2 << 20
"""Also the longest row: a longer one is a fault of the file. The library's reader holds 32 blocks ahead."""

READ_BYTES = 1 << 20
PIECE_ROWS = 65_536
HEADER_BYTES = 1 << 20  # the longest header: thousands of names of 63 characters
END = "\0" + "," * 10_000
ZIP = b"PK\x03\x04"  # the first bytes of a workbook: such a file is malformed, and not one without the columns


def _as_nul(error: UnicodeError) -> tuple[str, int]:
    assert isinstance(error, UnicodeDecodeError)
    return "\0", error.end


codecs.register_error("corevault-nul", _as_nul)


class _Utf8(io.RawIOBase):
    """``source`` as valid UTF-8 without a byte order mark, then the row ``END``."""

    def __init__(self, source: Plaintext) -> None:
        super().__init__()
        self._source = source
        self._decoder = codecs.getincrementaldecoder("utf-8-sig")(errors="corevault-nul")
        self._ready = memoryview(b"")
        self._ended = False
        self.blank = True

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: bytearray | memoryview) -> int:  # type: ignore[override]  # the stub takes any buffer; these are written to
        target = memoryview(buffer).cast("B")
        filled = 0
        while filled < len(target) and (self._ready or not self._ended):
            if not self._ready:
                self._advance()
            piece = self._ready[: len(target) - filled]
            target[filled : filled + len(piece)] = piece
            self._ready = self._ready[len(piece) :]
            filled += len(piece)
        return filled

    def _advance(self) -> None:
        data = self._source.read(READ_BYTES) or b""
        self._ended = not data
        text = self._decoder.decode(data, final=self._ended)
        self.blank = self.blank and not text.strip()
        self._ready = memoryview((f"{text}\n{END}\n" if self._ended else text).encode())


class _RaggedRows:
    """The places of the ragged rows that the parser has reported so far."""

    def __init__(self, meter: Meter) -> None:
        self._most_rows = meter.most_rows
        self._places = array("q")
        self.excess: Reason | None = None
        self._reason = meter.excess
        self.ended = False

    def record(self, row: pyarrow.csv.InvalidRow) -> str:
        """Record a ragged row. The parser calls this for each one; the header is row 1."""
        self.ended = row.text == END
        if self.ended:
            return "skip"
        place = row.number - 2
        if place >= self._most_rows:
            self.excess = self._reason
            return "error"
        self._places.append(place)
        return "skip"

    def take(self, start: int, rows: int | None) -> tuple[int, NDArray[np.int64]]:
        """Find the places of the next ``rows`` good rows.

        Args:
            start: the place from which to search.
            rows: the number of good rows; None at the end of the file, where only ragged rows remain.

        Returns:
            The place after the last row taken, and the places of the good rows.
        """
        ragged = np.array(self._places, dtype=np.int64)
        if rows is None:
            return start + len(ragged), np.empty(0, dtype=np.int64)
        candidates = np.arange(start, start + rows + len(ragged), dtype=np.int64)
        places = candidates[~np.isin(candidates, ragged)][:rows]
        stop = int(places[-1]) + 1 if rows else start
        self._places = array("q", ragged[ragged >= stop].tobytes())
        return stop, places


def read_csv(source: Plaintext, columns: Sequence[Column], meter: Meter) -> Iterator[RawRows]:
    """Read the rows of a CSV file in order.

    Raises:
        FileFault: malformed, empty, missing_column, unknown_column, too_large, too_many_units.
    """
    ragged = _RaggedRows(meter)
    _check_first_line(source, columns)
    text = _Utf8(source)
    reader = _open(text, ragged)
    names = [name.strip() for name in reader.schema.names]
    check_header(names, columns)
    start = 0
    while True:
        batch = _next_batch(text, reader, ragged)
        if batch is not None and batch.num_rows == 0:
            continue
        stop, places = ragged.take(start, None if batch is None else batch.num_rows)
        meter.count(stop - start, 0 if batch is None else batch.nbytes)
        cells = {} if batch is None else dict(zip(names, batch.columns, strict=True))
        yield from _cut_pieces(stop - start, places - start, cells)
        if batch is None:
            break
        start = stop
    if not ragged.ended:
        raise FileFault("malformed")
    if stop == 0:
        raise FileFault("empty")


def _check_first_line(source: Plaintext, columns: Sequence[Column]) -> None:
    """Check the header before the parser does.

    The parser would allocate a column for each comma of a hostile line.
    """
    head = source.read(HEADER_BYTES)
    if head.startswith(ZIP):
        raise FileFault("malformed")
    start = _Utf8(io.BytesIO(head))
    text = start.read().decode()
    source.seek(0)
    if start.blank:
        return
    try:
        names = next(row for row in csv.reader(io.StringIO(text, newline="")) if row)
    except csv.Error:
        raise FileFault("malformed") from None
    check_header([name.strip() for name in names], columns)


def _cut_pieces(length: int, places: NDArray[np.int64], cells: dict[str, pa.Array]) -> Iterator[RawRows]:
    for start in range(0, length, PIECE_ROWS):
        rows = min(PIECE_ROWS, length - start)
        first, last = np.searchsorted(places, (start, start + rows)).tolist()
        piece = {name: values.slice(first, last - first) for name, values in cells.items()}
        yield RawRows(rows, places[first:last] - start, piece)


def _open(source: _Utf8, ragged: _RaggedRows) -> pyarrow.csv.CSVStreamingReader:
    try:
        with translate_library_errors():
            reader = pyarrow.csv.open_csv(
                pa.PythonFile(source, mode="r"),
                read_options=pyarrow.csv.ReadOptions(use_threads=False, block_size=BLOCK_BYTES),
                parse_options=pyarrow.csv.ParseOptions(newlines_in_values=True, invalid_row_handler=ragged.record),
                convert_options=pyarrow.csv.ConvertOptions(
                    default_column_type=pa.string(), check_utf8=False, strings_can_be_null=False
                ),
            )
    except FileFault as fault:
        raise FileFault(_find_reason(source, ragged, fault)) from None
    if source.blank:
        raise FileFault("empty")
    return reader


def _find_reason(source: _Utf8, ragged: _RaggedRows, fault: FileFault) -> Reason:
    if source.blank:
        return "empty"
    return ragged.excess or fault.reason


def _next_batch(source: _Utf8, reader: pyarrow.csv.CSVStreamingReader, ragged: _RaggedRows) -> pa.RecordBatch | None:
    try:
        with translate_library_errors():
            return reader.read_next_batch()
    except StopIteration:
        return None
    except FileFault as fault:
        raise FileFault(_find_reason(source, ragged, fault)) from None
