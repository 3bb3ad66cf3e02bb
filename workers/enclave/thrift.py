"""Thrift's compact protocol, as far as Parquet footers need it.

Values are read one by one and are not kept, so that a hostile footer takes no memory.
"""

from collections.abc import Iterator
from typing import Final

from workers.enclave.faults import FileFault

STRUCT: Final = 12
INTEGERS: Final = frozenset({4, 5, 6})
"""Types of 16, 32 and 64 bits."""

_TRUE, _FALSE, _BYTE = 1, 2, 3
_MOST_NESTED = 32


class CompactReader:
    """A reader of ``data``; raises IndexError beyond its end."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self.position = 0

    def fields(self) -> Iterator[tuple[int, int]]:
        """Yield the number and the type of each field of a struct.

        The caller reads or skips the value before the next field.
        """
        name = 0
        while head := self._byte():
            name = name + (head >> 4) if head >> 4 else self.number()
            yield name, head & 15

    def count(self) -> int:
        """Read the length of a list of structs."""
        head = self._byte()
        if head & 15 != STRUCT:
            raise FileFault("malformed")
        return self._varint() if head >> 4 == 15 else head >> 4

    def number(self) -> int:
        """Read a signed integer."""
        value = self._varint()
        return (value >> 1) ^ -(value & 1)

    def skip(self, kind: int, depth: int = 0) -> None:
        """Skip a value.

        Raises:
            FileFault: malformed; the type is unknown, or nested too deeply.
        """
        match kind:
            case 1 | 2:
                return
            case 3:
                self.position += 1
            case 4 | 5 | 6:
                self._varint()
            case 7:
                self.position += 8
            case 8:
                length = self._varint()
                self.position += length
            case 9 | 10 | 12 if depth < _MOST_NESTED:
                self._skip_elements(kind, depth + 1)
            case _:
                raise FileFault("malformed")

    def _skip_elements(self, kind: int, depth: int) -> None:
        if kind == STRUCT:
            for _, inner in self.fields():
                self.skip(inner, depth)
            return
        head = self._byte()
        inner = _BYTE if head & 15 in {_TRUE, _FALSE} else head & 15  # in a list, a truth value takes a byte
        for _ in range(self._varint() if head >> 4 == 15 else head >> 4):
            self.skip(inner, depth)
            if self.position > len(self._data):
                raise IndexError

    def _byte(self) -> int:
        value = self._data[self.position]
        self.position += 1
        return value

    def _varint(self) -> int:
        value = shift = 0
        while (byte := self._byte()) >= 0x80 and shift < 64:
            value |= (byte & 0x7F) << shift
            shift += 7
        return value | byte << shift
