"""What every file format has in common: rows by column, the header's faults, the caps."""

import io
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from app.errors import CorevaultError
from app.inference.core.facts import Column
from workers.enclave.faults import FileFault, Reason

EXPANSION = 256
EXPANDED_BYTES = 256 << 20  # any file may expand to so much, however small it is
Plaintext = io.RawIOBase | io.BufferedIOBase  # seekable


@dataclass(frozen=True, slots=True)
class Caps:
    """How much of a file is read before it is too large."""

    rows: int
    decoded_bytes: int

    def of(self, size: int) -> "Caps":
        """For a file of ``size`` bytes: a small one may not expand without end."""
        return Caps(self.rows, min(self.decoded_bytes, max(EXPANDED_BYTES, size * EXPANSION)))


@dataclass(frozen=True, slots=True)
class RawRows:
    """The next ``length`` rows of a file: ``cells`` of those at ``places``; the others are broken, hence null."""

    length: int
    places: NDArray[np.int64] | None  # None: all of them
    cells: Mapping[str, pa.Array]


class Meter:
    """Counts what was read against caps, and against slots where a row is a unit (``slots`` is None elsewhere)."""

    def __init__(self, slots: int | None, caps: Caps) -> None:
        self.most_rows = caps.rows if slots is None else slots
        self.excess: Reason = "too_large" if slots is None else "too_many_units"
        self._caps = caps
        self._rows = 0
        self._bytes = 0

    def count(self, rows: int, decoded_bytes: int) -> None:
        """Raises FileFault once there are more rows than units allow, or more of anything than the caps do."""
        self._rows += rows
        self._bytes += decoded_bytes
        if self._rows > self.most_rows:
            raise FileFault(self.excess)
        if self._rows > self._caps.rows or self._bytes > self._caps.decoded_bytes:
            raise FileFault("too_large")


def check_header(names: Sequence[str], columns: Sequence[Column]) -> None:
    """Raises FileFault unless the file has exactly the declared columns, in any order."""
    declared = {column.name for column in columns}
    if len(set(names)) < len(names) or any("\0" in name for name in names):
        raise FileFault("malformed")
    missing = [column.name for column in columns if column.name not in names]
    if missing:  # and no name of the file is told: without a header, its first row would be
        raise FileFault("missing_column", missing)
    unknown = [name for name in names if name not in declared]
    if unknown:
        raise FileFault("unknown_column", unknown)


@contextmanager
def faults_of_the_file() -> Iterator[None]:
    """What a library makes of a broken file, as a fault without any of its words."""
    try:
        yield
    except (FileFault, CorevaultError):
        raise
    except (MemoryError, pa.ArrowCapacityError):
        raise FileFault("too_large") from None
    except (pa.ArrowException, OSError, ValueError, LookupError, TypeError, RecursionError):
        raise FileFault("malformed") from None
