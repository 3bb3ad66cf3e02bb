"""Common parts of all file formats: rows by column, checks of the header, caps."""

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
EXPANDED_BYTES = 256 << 20  # every file may expand to this size, also a small one
Plaintext = io.RawIOBase | io.BufferedIOBase  # seekable


@dataclass(frozen=True, slots=True)
class Caps:
    """The most rows and decoded bytes of a file; a larger file is rejected."""

    rows: int
    decoded_bytes: int

    def of(self, size: int) -> "Caps":
        """Compute the caps of a file of ``size`` bytes.

        They limit how much a small file may expand.
        """
        return Caps(self.rows, min(self.decoded_bytes, max(EXPANDED_BYTES, size * EXPANSION)))


@dataclass(frozen=True, slots=True)
class RawRows:
    """The next ``length`` rows of a file.

    Attributes:
        length: the number of rows.
        places: the places of the rows that have cells, ``(n,)``, or None for all. The other rows are null rows.
        cells: name -> ``(n,)`` cells.
    """

    length: int
    places: NDArray[np.int64] | None
    cells: Mapping[str, pa.Array]


class Meter:
    """Counts rows and bytes, and rejects a file that exceeds caps or slots.

    ``slots`` is None unless a row is a unit.
    """

    def __init__(self, slots: int | None, caps: Caps) -> None:
        self.most_rows = caps.rows if slots is None else slots
        self.excess: Reason = "too_large" if slots is None else "too_many_units"
        self._caps = caps
        self._rows = 0
        self._bytes = 0

    def count(self, rows: int, decoded_bytes: int) -> None:
        """Count rows and bytes.

        Raises:
            FileFault: too_many_units if there are more rows than slots, too_large beyond the caps.
        """
        self._rows += rows
        self._bytes += decoded_bytes
        if self._rows > self.most_rows:
            raise FileFault(self.excess)
        if self._rows > self._caps.rows or self._bytes > self._caps.decoded_bytes:
            raise FileFault("too_large")


def check_header(names: Sequence[str], columns: Sequence[Column]) -> None:
    """Check that the file has exactly the declared columns, in any order.

    Raises:
        FileFault: malformed, missing_column, unknown_column.
    """
    declared = {column.name for column in columns}
    if len(set(names)) < len(names) or any("\0" in name for name in names):
        raise FileFault("malformed")
    missing = [column.name for column in columns if column.name not in names]
    if missing:  # names of the file are not reported: in a file without a header they are cells of its first row
        raise FileFault("missing_column", missing)
    unknown = [name for name in names if name not in declared]
    if unknown:
        raise FileFault("unknown_column", unknown)


@contextmanager
def translate_library_errors() -> Iterator[None]:
    """Translate a library's errors about a broken file to faults, without their messages."""
    try:
        yield
    except (FileFault, CorevaultError):
        raise
    except (MemoryError, pa.ArrowCapacityError):
        raise FileFault("too_large") from None
    except (pa.ArrowException, OSError, ValueError, LookupError, TypeError, RecursionError):
        raise FileFault("malformed") from None
