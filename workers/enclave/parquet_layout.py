"""Checks that the footer of a Parquet file accounts for every byte before it.

Readers ignore bytes that the footer does not name. Two files in a row are one file for a reader: it finds the footer at
the end, and reads the first file's bytes as the last file's, or leaves them out. So every byte must belong to a magic
number, a column chunk, a page index, a Bloom filter or the footer. Zeros that pad one of them are allowed. The footer
is read with Thrift's compact protocol, because the library does not report the places of indexes and filters.
"""

from collections.abc import Iterator

from workers.enclave.faults import FileFault
from workers.enclave.sources import Plaintext
from workers.enclave.thrift import INTEGERS, STRUCT, CompactReader

MAGIC = b"PAR1"
_TAIL_BYTES = 8  # the footer's length and the magic number
_PIECE_BYTES = 1 << 20
_HEADER_BYTES = 256
_COPY_BYTES = (4096, 1 << 20)

_VALUES, _PAGE_BYTES, _DATA, _DICTIONARY, _FILTER, _FILTER_BYTES = 5, 7, 9, 11, 14, 15
"""Fields of ``ColumnMetaData``."""
_IDENTITY = frozenset({_VALUES, _PAGE_BYTES, _DATA})

Range = tuple[int, int]
"""A range of bytes: the first one, and the one after the last."""


def check_every_byte(source: Plaintext, size: int) -> None:
    """Check that the footer accounts for all ``size`` bytes of the file.

    Raises:
        FileFault: malformed; it does not.
        IndexError: the footer ends early.
    """
    source.seek(size - _TAIL_BYTES)
    end = size - _TAIL_BYTES - int.from_bytes(source.read(4), "little")
    source.seek(0)
    if end < len(MAGIC) or source.read(len(MAGIC)) != MAGIC:
        raise FileFault("malformed")
    source.seek(end)
    footer = source.read(size - _TAIL_BYTES - end) or b""
    reached = len(MAGIC)
    for first, last in [*sorted(_file_ranges(source, footer)), (end, end)]:
        if not 0 < first <= last <= end:
            raise FileFault("malformed")
        _check_zeros(source, reached, first)
        reached = max(reached, last)


def _check_zeros(source: Plaintext, first: int, last: int) -> None:
    for start in range(first, last, _PIECE_BYTES):
        source.seek(start)
        length = min(_PIECE_BYTES, last - start)
        if source.read(length) != bytes(length):
            raise FileFault("malformed")


def _file_ranges(source: Plaintext, footer: bytes) -> Iterator[Range]:
    """Yield the ranges that ``FileMetaData`` names; its field 4 lists row groups."""
    reader = CompactReader(footer)
    for name, kind in reader.fields():
        if name != 4:
            reader.skip(kind)
            continue
        for _ in range(reader.count()):
            yield from _row_group_ranges(source, reader)


def _row_group_ranges(source: Plaintext, reader: CompactReader) -> Iterator[Range]:
    """Yield the ranges that a ``RowGroup`` names; its field 1 lists column chunks."""
    for name, kind in reader.fields():
        if name != 1:
            reader.skip(kind)
            continue
        for _ in range(reader.count()):
            yield from _chunk_ranges(source, reader)


def _chunk_ranges(source: Plaintext, reader: CompactReader) -> Iterator[Range]:
    """Yield the ranges that a ``ColumnChunk`` names.

    Its fields: 1 is another file; 2 is the offset of a possible copy of the metadata, which are field 3; 4 to 7 are
    offsets and lengths of the offset index and the column index.
    """
    numbers: dict[int, int] = {}
    metadata: dict[int, int] = {}
    for name, kind in reader.fields():
        if name == 1:
            raise FileFault("malformed")
        if name == 3 and kind == STRUCT:
            metadata = _read_integers(reader)
        elif kind in INTEGERS:
            numbers[name] = reader.number()
        else:
            reader.skip(kind)
    places = [metadata[name] for name in (_DATA, _DICTIONARY) if metadata.get(name)]
    if places:
        last = min(places) + metadata.get(_PAGE_BYTES, 0)
        yield min(places), last
        if numbers.get(2, 0) >= last:
            yield last, last + _measure_copy(source, last, metadata)
    yield from _filter_ranges(source, metadata)
    for offset, length in ((4, 5), (6, 7)):
        if offset in numbers:
            yield numbers[offset], numbers[offset] + numbers.get(length, 0)


def _measure_copy(source: Plaintext, offset: int, metadata: dict[int, int]) -> int:
    """Measure the copy of a chunk's metadata that some writers put after its pages; zero for none."""
    for most in _COPY_BYTES:
        source.seek(offset)
        reader = CompactReader(source.read(most) or b"")
        try:
            copy = _read_integers(reader)
        except (IndexError, FileFault):
            continue
        is_same = all(copy.get(name) == metadata.get(name) for name in _IDENTITY)
        return reader.position if is_same else 0
    return 0


def _filter_ranges(source: Plaintext, metadata: dict[int, int]) -> Iterator[Range]:
    """Yield the range of the Bloom filter.

    If the footer leaves out its length, field 1 of the filter's header has the length of its bits.
    """
    offset = metadata.get(_FILTER)
    if offset is None:
        return
    if _FILTER_BYTES in metadata:
        yield offset, offset + metadata[_FILTER_BYTES]
        return
    source.seek(max(offset, 0))
    reader = CompactReader(source.read(_HEADER_BYTES) or b"")
    bits = _read_integers(reader).get(1, 0)
    yield offset, offset + reader.position + bits


def _read_integers(reader: CompactReader) -> dict[int, int]:
    """Read the integers of a struct, by the numbers of their fields."""
    numbers: dict[int, int] = {}
    for name, kind in reader.fields():
        if kind in INTEGERS:
            numbers[name] = reader.number()
        else:
            reader.skip(kind)
    return numbers
