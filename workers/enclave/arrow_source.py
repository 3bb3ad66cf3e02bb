"""Parquet files and Arrow streams as streams of rows.

What a Parquet footer says of its size is checked before it is read, and what it says of row counts before a row is.
No byte is left unread: bytes that the footer does not name, bytes after the end of a stream and pages whose checksum
fails are faults of the file.
"""

import io
from collections.abc import Iterator, Sequence

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.ipc
import pyarrow.parquet as pq

from app.inference.core.facts import Column
from workers.enclave.faults import FileFault
from workers.enclave.parquet_layout import check_every_byte
from workers.enclave.sources import Meter, Plaintext, RawRows, check_header, faults_of_the_file

PARQUET_BATCH_ROWS = 16_384
PARQUET_BUFFER_BYTES = 256 << 10
ARROW_BATCH_ROWS = 65_536
FOOTER_BYTES = 32 << 20
"""A footer takes ten times its size in memory: this one is of hundreds of thousands of columns' pieces."""


def parquet_rows(source: Plaintext, columns: Sequence[Column], meter: Meter) -> Iterator[RawRows]:
    """The rows of a Parquet file in order.

    Raises:
        FileFault: malformed, empty, missing_column, unknown_column, wrong_type, too_large, too_many_units.
    """
    with faults_of_the_file():
        _check_footer_size(source)
        file = _open_parquet(source, [])
        _check_schema(file.schema_arrow, columns)
        keyed = [field.name for field in file.schema_arrow if _is_keyed_text(field.type)]
        if keyed:
            file = _open_parquet(source, keyed)
        if file.metadata.num_rows > meter.most_rows:
            raise FileFault(meter.excess)
        _check_row_counts(file.metadata)
        check_every_byte(source, source.seek(0, io.SEEK_END))
        batches = file.iter_batches(batch_size=PARQUET_BATCH_ROWS, use_threads=False)
    yield from _rows(batches, columns, meter, file.metadata.num_rows)


def arrow_rows(source: Plaintext, columns: Sequence[Column], meter: Meter) -> Iterator[RawRows]:
    """The rows of an Arrow stream in order; raises as :func:`parquet_rows`."""
    with faults_of_the_file():
        reader = pyarrow.ipc.open_stream(source, options=pyarrow.ipc.IpcReadOptions(use_threads=False))
        _check_schema(reader.schema, columns)
    yield from _rows(iter(reader), columns, meter)
    if source.read(1):
        raise FileFault("malformed")


def _open_parquet(source: Plaintext, keyed: list[str]) -> pq.ParquetFile:
    """With the columns ``keyed`` read as they lie in the file: converting them would raise for bad UTF-8."""
    source.seek(0)
    return pq.ParquetFile(
        source,
        read_dictionary=keyed,
        buffer_size=PARQUET_BUFFER_BYTES,
        pre_buffer=False,
        arrow_extensions_enabled=False,
        page_checksum_verification=True,
    )


def _check_footer_size(source: Plaintext) -> None:
    start = source.seek(0, io.SEEK_END) - 8
    source.seek(max(start, 0))
    if FOOTER_BYTES < int.from_bytes(source.read(4), "little") <= start:  # else the library finds what is wrong
        raise FileFault("too_large")


def _check_row_counts(metadata: pq.FileMetaData) -> None:
    """The file, its row groups and their columns name one number; the library would leave out what exceeds it."""
    left = metadata.num_rows
    for place in range(metadata.num_row_groups):
        group = metadata.row_group(place)
        rows = group.num_rows
        left -= rows
        if rows < 0 or any(group.column(column).num_values != rows for column in range(group.num_columns)):
            raise FileFault("malformed")
    if left:
        raise FileFault("malformed")


def _rows(
    batches: Iterator[pa.RecordBatch], columns: Sequence[Column], meter: Meter, promised: int | None = None
) -> Iterator[RawRows]:
    """The batches in pieces; ``promised`` is how many rows they must have."""
    found = 0
    while True:
        with faults_of_the_file():
            batch = next(batches, None)
            if batch is None:
                break
            meter.count(batch.num_rows, batch.nbytes)
        for start in range(0, batch.num_rows, ARROW_BATCH_ROWS):
            piece = batch.slice(start, ARROW_BATCH_ROWS)
            with faults_of_the_file():
                cells = {column.name: _cells(piece.column(column.name)) for column in columns}
            yield RawRows(piece.num_rows, None, cells)
        found += batch.num_rows
    if promised not in {None, found}:
        raise FileFault("malformed")
    if not found:
        raise FileFault("empty")


def _check_schema(schema: pa.Schema, columns: Sequence[Column]) -> None:
    check_header(schema.names, columns)
    wrong = [column.name for column in columns if not _is_admissible(schema.field(column.name).type)]
    if wrong:
        raise FileFault("wrong_type", wrong)


def _is_admissible(kind: pa.DataType) -> bool:
    """Whether cells of that type can be of a declared one: numbers and text can be of any, times and lists of none."""
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    numeric = pa.types.is_floating(kind) or pa.types.is_decimal(kind) or pa.types.is_boolean(kind)
    return numeric or pa.types.is_null(kind) or pa.types.is_integer(kind) or _is_text(kind)


def _is_text(kind: pa.DataType) -> bool:
    return kind in {
        pa.string(),
        pa.large_string(),
        pa.string_view(),
        pa.binary(),
        pa.large_binary(),
        pa.binary_view(),
    }


def _is_keyed_text(kind: pa.DataType) -> bool:
    return pa.types.is_dictionary(kind) and _is_text(kind.value_type)


def _cells(values: pa.Array) -> pa.Array:
    """``values``, checked against out-of-range offsets and indices, in one of the types that cells have."""
    if pa.types.is_dictionary(values.type):
        decoded = _cells(values.dictionary)
        values.indices.validate(full=True)
        return pc.take(decoded, values.indices, boundscheck=True)
    kind = values.type
    if _is_text(kind):
        return _text(values)
    values.validate(full=True)
    if pa.types.is_integer(kind):
        return values.cast(pa.uint64() if pa.types.is_uint64(kind) else pa.int64())
    return values if pa.types.is_null(kind) else values.cast(pa.float64(), safe=False)


_BYTES = {pa.string(): pa.binary(), pa.large_string(): pa.large_binary(), pa.string_view(): pa.binary_view()}


def _text(values: pa.Array) -> pa.Array:
    """As strings of whatever bytes: bad UTF-8 spoils a cell, never a file."""
    raw = values.view(_BYTES[values.type]) if values.type in _BYTES else values
    raw.validate(full=True)
    return pc.cast(raw, options=pc.CastOptions(target_type=pa.string(), allow_invalid_utf8=True))
