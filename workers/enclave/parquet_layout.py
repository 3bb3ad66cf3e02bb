"""Whether the footer of a Parquet file accounts for every byte before it: no reader reads what no footer names.

Two files in a row are one file for a reader, which finds the footer at the end and takes the other file's bytes for
the last one's, or leaves them out. So every byte belongs to a magic number, a column chunk, a page index, a Bloom
filter or the footer, or is a zero that pads one of them. The footer is read by Thrift's compact protocol, because the
library does not say where indexes and filters lie.
"""

from collections.abc import Iterator

from workers.enclave.faults import FileFault
from workers.enclave.sources import Plaintext
from workers.enclave.thrift import INTEGERS, STRUCT, Compact

MAGIC = b"PAR1"
_TAIL_BYTES = 8  # the footer's length and the magic number
_PIECE_BYTES = 1 << 20
_HEADER_BYTES = 256
_COPY_BYTES = (4096, 1 << 20)

_VALUES, _PAGE_BYTES, _DATA, _DICTIONARY, _FILTER, _FILTER_BYTES = 5, 7, 9, 11, 14, 15
"""Fields of ``ColumnMetaData``."""
_IDENTITY = frozenset({_VALUES, _PAGE_BYTES, _DATA})

Range = tuple[int, int]
"""Of bytes: the first one, and the one after the last."""


def check_every_byte(source: Plaintext, size: int) -> None:
    """Raise FileFault (malformed) unless the footer accounts for all ``size`` bytes of the file.

    Raises:
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
    for first, last in [*sorted(_ranges(source, footer)), (end, end)]:
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


def _ranges(source: Plaintext, footer: bytes) -> Iterator[Range]:
    """What the footer names, in the order of ``FileMetaData``, whose field 4 lists row groups."""
    reader = Compact(footer)
    for name, kind in reader.fields():
        if name != 4:
            reader.skip(kind)
            continue
        for _ in range(reader.count()):
            yield from _of_row_group(source, reader)


def _of_row_group(source: Plaintext, reader: Compact) -> Iterator[Range]:
    """``RowGroup``: field 1 lists column chunks."""
    for name, kind in reader.fields():
        if name != 1:
            reader.skip(kind)
            continue
        for _ in range(reader.count()):
            yield from _of_chunk(source, reader)


def _of_chunk(source: Plaintext, reader: Compact) -> Iterator[Range]:
    """``ColumnChunk``: 1 another file, 2 where a copy of the metadata 3 may lie, 4 to 7 offset and column index."""
    numbers: dict[int, int] = {}
    metadata: dict[int, int] = {}
    for name, kind in reader.fields():
        if name == 1:
            raise FileFault("malformed")
        if name == 3 and kind == STRUCT:
            metadata = _numbers(reader)
        elif kind in INTEGERS:
            numbers[name] = reader.number()
        else:
            reader.skip(kind)
    places = [metadata[name] for name in (_DATA, _DICTIONARY) if metadata.get(name)]
    if places:
        last = min(places) + metadata.get(_PAGE_BYTES, 0)
        yield min(places), last
        if numbers.get(2, 0) >= last:
            yield last, last + _copy_bytes(source, last, metadata)
    yield from _of_filter(source, metadata)
    for offset, length in ((4, 5), (6, 7)):
        if offset in numbers:
            yield numbers[offset], numbers[offset] + numbers.get(length, 0)


def _copy_bytes(source: Plaintext, offset: int, metadata: dict[int, int]) -> int:
    """The length of a copy of a chunk's metadata, which some writers put behind its pages; zero if there is none."""
    for most in _COPY_BYTES:
        source.seek(offset)
        reader = Compact(source.read(most) or b"")
        try:
            found = _numbers(reader)
        except (IndexError, FileFault):
            continue
        same = all(found.get(name) == metadata.get(name) for name in _IDENTITY)
        return reader.place if same else 0
    return 0


def _of_filter(source: Plaintext, metadata: dict[int, int]) -> Iterator[Range]:
    """The Bloom filter. Where the footer leaves out its length, field 1 of its header has the length of its bits."""
    offset = metadata.get(_FILTER)
    if offset is None:
        return
    if _FILTER_BYTES in metadata:
        yield offset, offset + metadata[_FILTER_BYTES]
        return
    source.seek(max(offset, 0))
    reader = Compact(source.read(_HEADER_BYTES) or b"")
    bits = _numbers(reader).get(1, 0)
    yield offset, offset + reader.place + bits


def _numbers(reader: Compact) -> dict[int, int]:
    """The integers of a struct, by the names of their fields."""
    numbers: dict[int, int] = {}
    for name, kind in reader.fields():
        if kind in INTEGERS:
            numbers[name] = reader.number()
        else:
            reader.skip(kind)
    return numbers
