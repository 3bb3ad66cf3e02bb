"""Reads Parquet files and Arrow streams as batches of rows.

The size of a Parquet footer is checked before the footer is read, and its row counts before a row is read. Every byte
must be accounted for. Bytes that the footer does not name, bytes after the end of a stream, and pages with a wrong
checksum are faults of the file.
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
from workers.enclave.sources import Meter, Plaintext, RawRows, check_header, translate_library_errors

PARQUET_BATCH_ROWS = 16_384
PARQUET_BUFFER_BYTES = 256 << 10
ARROW_BATCH_ROWS = 65_536
FOOTER_BYTES = 32 << 20
"""The largest footer, which takes ten times its size in memory; it describes hundreds of thousands of column chunks."""


def read_parquet(source: Plaintext, columns: Sequence[Column], meter: Meter) -> Iterator[RawRows]:
    """Read the rows of a Parquet file in order.

    Raises:
        FileFault: malformed, empty, missing_column, unknown_column, wrong_type, too_large, too_many_units.
    """
    with translate_library_errors():
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
    yield from _cut_batches(batches, columns, meter, file.metadata.num_rows)


def read_arrow(source: Plaintext, columns: Sequence[Column], meter: Meter) -> Iterator[RawRows]:
    """Read the rows of an Arrow stream in order; raises as :func:`read_parquet`."""
    with translate_library_errors():
        reader = pyarrow.ipc.open_stream(source, options=pyarrow.ipc.IpcReadOptions(use_threads=False))
        _check_schema(reader.schema, columns)
    yield from _cut_batches(iter(reader), columns, meter)
    if source.read(1):
        raise FileFault("malformed")


def _open_parquet(source: Plaintext, keyed: list[str]) -> pq.ParquetFile:
    """Open the file; the columns ``keyed`` stay dictionaries, because converting them would raise for bad UTF-8."""
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
    if FOOTER_BYTES < int.from_bytes(source.read(4), "little") <= start:  # the library checks smaller footers
        raise FileFault("too_large")


def _check_row_counts(metadata: pq.FileMetaData) -> None:
    """Check that the row counts of file, row groups and columns agree.

    The library would leave out rows beyond the file's count.
    """
    left = metadata.num_rows
    for place in range(metadata.num_row_groups):
        group = metadata.row_group(place)
        rows = group.num_rows
        left -= rows
        if rows < 0 or any(group.column(column).num_values != rows for column in range(group.num_columns)):
            raise FileFault("malformed")
    if left:
        raise FileFault("malformed")


def _cut_batches(
    batches: Iterator[pa.RecordBatch], columns: Sequence[Column], meter: Meter, expected_rows: int | None = None
) -> Iterator[RawRows]:
    """Cut the batches into pieces, and check that they have ``expected_rows`` rows in total."""
    count = 0
    while True:
        with translate_library_errors():
            batch = next(batches, None)
            if batch is None:
                break
            meter.count(batch.num_rows, batch.nbytes)
        for start in range(0, batch.num_rows, ARROW_BATCH_ROWS):
            piece = batch.slice(start, ARROW_BATCH_ROWS)
            with translate_library_errors():
                cells = {column.name: _convert_cells(piece.column(column.name)) for column in columns}
            yield RawRows(piece.num_rows, None, cells)
        count += batch.num_rows
    if expected_rows not in {None, count}:
        raise FileFault("malformed")
    if not count:
        raise FileFault("empty")


def _check_schema(schema: pa.Schema, columns: Sequence[Column]) -> None:
    check_header(schema.names, columns)
    wrong = [column.name for column in columns if not _is_admissible(schema.field(column.name).type)]
    if wrong:
        raise FileFault("wrong_type", wrong)


def _is_admissible(kind: pa.DataType) -> bool:
    """Whether cells of type ``kind`` can be values: numbers and text can, times and lists cannot."""
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


def _convert_cells(values: pa.Array) -> pa.Array:
    """Check offsets and indices, and convert to one of the types of :func:`workers.enclave.cells.parse_cells`."""
    if pa.types.is_dictionary(values.type):
        decoded = _convert_cells(values.dictionary)
        values.indices.validate(full=True)
        return pc.take(decoded, values.indices, boundscheck=True)
    kind = values.type
    if _is_text(kind):
        return _convert_text(values)
    values.validate(full=True)
    if pa.types.is_integer(kind):
        return values.cast(pa.uint64() if pa.types.is_uint64(kind) else pa.int64())
    return values if pa.types.is_null(kind) else values.cast(pa.float64(), safe=False)


_BYTES = {pa.string(): pa.binary(), pa.large_string(): pa.large_binary(), pa.string_view(): pa.binary_view()}


def _convert_text(values: pa.Array) -> pa.Array:
    """Convert to strings, which may hold any bytes.

    So bad UTF-8 makes one cell missing, and is not a fault of the file.
    """
    raw = values.view(_BYTES[values.type]) if values.type in _BYTES else values
    raw.validate(full=True)
    return pc.cast(raw, options=pc.CastOptions(target_type=pa.string(), allow_invalid_utf8=True))
