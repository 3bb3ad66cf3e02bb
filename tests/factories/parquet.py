"""Parquet files with false footers.

A footer in Thrift's compact protocol is parsed into plain values, changed, and written again.
"""

import io
import struct
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

_TRUE, _FALSE, _BYTE, _I64, _DOUBLE, _BINARY, _LIST, _SET, _STRUCT = 1, 2, 3, 6, 7, 8, 9, 10, 12
_MAGIC = b"PAR1"
NUM_ROWS, ROW_GROUPS = 3, 4
"""Field numbers of ``FileMetaData``; the next ones are of ``RowGroup`` and ``ColumnMetaData``."""

COLUMNS, GROUP_BYTES, GROUP_ROWS = 1, 2, 3
COLUMN_METADATA, NUM_VALUES, DATA_OFFSET = 3, 5, 9


@dataclass
class Field:
    kind: int
    value: Any


Footer = dict[int, Field]


def rewritten(file: bytes, change: Callable[[Footer], None]) -> bytes:
    """Return ``file`` after ``change`` was applied to its footer."""
    length = struct.unpack("<I", file[-8:-4])[0]
    footer: Footer = _struct(io.BytesIO(file[-8 - length : -8]))
    change(footer)
    raw = _encode_struct(footer)
    return file[: -8 - length] + raw + struct.pack("<I", len(raw)) + _MAGIC


def repeated(table: pa.Table, times: int) -> bytes:
    """Return a small, well-formed file whose footer lists its one row group ``times`` times."""
    sink = io.BytesIO()
    pq.write_table(table, sink, row_group_size=len(table), compression="zstd", store_schema=False)

    def repeat(footer: Footer) -> None:
        footer[ROW_GROUPS].value[1] *= times
        footer[NUM_ROWS].value *= times

    return rewritten(sink.getvalue(), repeat)


def column_of(group: Footer, place: int = 0) -> Footer:
    """Return the ``ColumnMetaData`` of a row group's column."""
    metadata: Footer = group[COLUMNS].value[1][place][COLUMN_METADATA].value
    return metadata


def groups(footer: Footer) -> list[Footer]:
    row_groups: list[Footer] = footer[ROW_GROUPS].value[1]
    return row_groups


def _varint(source: io.BytesIO) -> int:
    value = shift = 0
    while True:
        byte = source.read(1)[0]
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value
        shift += 7


def _number(source: io.BytesIO) -> int:
    value = _varint(source)
    return (value >> 1) ^ -(value & 1)


def _struct(source: io.BytesIO) -> Footer:
    fields: Footer = {}
    name = 0
    while byte := source.read(1)[0]:
        name = name + (byte >> 4) if byte >> 4 else _number(source)
        kind = byte & 15
        fields[name] = Field(kind, kind == _TRUE if kind in {_TRUE, _FALSE} else _value(source, kind))
    return fields


def _value(source: io.BytesIO, kind: int) -> Any:
    match kind:
        case 1 | 2 | 3:
            return source.read(1)[0]
        case 7:
            return source.read(8)
        case 8:
            return source.read(_varint(source))
        case 9 | 10:
            head = source.read(1)[0]
            count = _varint(source) if head >> 4 == 15 else head >> 4
            return [head & 15, [_value(source, head & 15) for _ in range(count)]]
        case 12:
            return _struct(source)
        case _:
            return _number(source)


def _encode_varint(value: int) -> bytes:
    encoded = bytearray()
    while value > 0x7F:
        encoded.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*encoded, value])


def _encode_number(value: int) -> bytes:
    return _encode_varint((value << 1) ^ (value >> 63))


def _encode_struct(fields: Footer) -> bytes:
    encoded = b""
    for name, field in sorted(fields.items()):
        kind = (_TRUE if field.value else _FALSE) if field.kind in {_TRUE, _FALSE} else field.kind
        encoded += bytes([kind]) + _encode_number(name)
        encoded += b"" if field.kind in {_TRUE, _FALSE} else _encode_value(kind, field.value)
    return encoded + b"\0"


def _encode_value(kind: int, value: Any) -> bytes:
    match kind:
        case 1 | 2 | 3:
            return bytes([value])
        case 7:
            return bytes(value)
        case 8:
            return _encode_varint(len(value)) + bytes(value)
        case 9 | 10:
            inner, items = value
            encoded = b"".join(_encode_value(inner, item) for item in items)
            return bytes([0xF0 | inner]) + _encode_varint(len(items)) + encoded
        case 12:
            return _encode_struct(value)
        case _:
            return _encode_number(value)
