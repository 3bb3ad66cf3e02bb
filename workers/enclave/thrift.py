"""Thrift's compact protocol, as far as Parquet footers need it: values are read one by one, and none is kept."""

from collections.abc import Iterator
from typing import Final

from workers.enclave.faults import FileFault

STRUCT: Final = 12
INTEGERS: Final = frozenset({4, 5, 6})
"""Types of 16, 32 and 64 bits."""

_TRUE, _FALSE, _BYTE = 1, 2, 3
_MOST_NESTED = 32


class Compact:
    """A reader of ``data``; raises IndexError beyond its end."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self.place = 0

    def fields(self) -> Iterator[tuple[int, int]]:
        """Name and type of each field of a struct; the caller reads or skips its value before the next one."""
        name = 0
        while head := self._byte():
            name = name + (head >> 4) if head >> 4 else self.number()
            yield name, head & 15

    def count(self) -> int:
        """How many elements a list has, all of them structs."""
        head = self._byte()
        if head & 15 != STRUCT:
            raise FileFault("malformed")
        return self._varint() if head >> 4 == 15 else head >> 4

    def number(self) -> int:
        """A signed integer."""
        value = self._varint()
        return (value >> 1) ^ -(value & 1)

    def skip(self, kind: int, depth: int = 0) -> None:
        """Pass a value over; ``FileFault`` for a type that there is not, or for one that is nested too deeply."""
        match kind:
            case 1 | 2:
                return
            case 3:
                self.place += 1
            case 4 | 5 | 6:
                self._varint()
            case 7:
                self.place += 8
            case 8:
                length = self._varint()
                self.place += length
            case 9 | 10 | 12 if depth < _MOST_NESTED:
                self._skip_within(kind, depth + 1)
            case _:
                raise FileFault("malformed")

    def _skip_within(self, kind: int, depth: int) -> None:
        if kind == STRUCT:
            for _, inner in self.fields():
                self.skip(inner, depth)
            return
        head = self._byte()
        inner = _BYTE if head & 15 in {_TRUE, _FALSE} else head & 15  # in a list, a truth value takes a byte
        for _ in range(self._varint() if head >> 4 == 15 else head >> 4):
            self.skip(inner, depth)
            if self.place > len(self._data):
                raise IndexError

    def _byte(self) -> int:
        value = self._data[self.place]
        self.place += 1
        return value

    def _varint(self) -> int:
        value = shift = 0
        while (byte := self._byte()) >= 0x80 and shift < 64:
            value |= (byte & 0x7F) << shift
            shift += 7
        return value | byte << shift
