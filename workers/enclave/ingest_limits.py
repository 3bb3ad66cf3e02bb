"""Limits of one ingestion: caps that the operator sets, and a time limit.

The time limit follows the upload's size and the declared table, which are public, and never a row (W14). A file that
exceeds it is rejected, so it is generous: at least fifty times the processor time of any kind of file on a slow core.
It keeps a file that was made to be slow from blocking a worker.
"""

import math
from dataclasses import dataclass
from typing import Final

from app.inference.core.facts import DeclaredFacts
from workers.enclave.sources import Caps

BASE_SECONDS: Final = 600.0
BYTES_A_SECOND: Final = 1 << 20
"""Bytes of the upload that are opened, hashed and parsed in a second."""
DECODED_BYTES_A_SECOND: Final = 16 << 20
"""Bytes of the largest expanded upload that are parsed in a second."""
CELLS_A_SECOND: Final = 1e6
"""Cells of the table, in all of its slots, that are written in a second."""

REGISTERED_A_SECOND: Final = 1e5
"""Pseudonyms of earlier blocks of a series, padding included, that are compared in a second."""


@dataclass(frozen=True, slots=True)
class Limits:
    """The limits of ingestions, as the operator sets them.

    Attributes:
        memory_bytes: address space of the child process.
        rows: of a file.
        decoded_bytes: of a file after decoding.
        time_scale: multiplies processor time, for slow machines.
        spare_seconds: the child is ended this long after twice its processor time has passed.
    """

    memory_bytes: int = 4 << 30  # of address space, of which the libraries take about a third of a gigabyte
    rows: int = 10**9
    decoded_bytes: int = 64 << 30
    time_scale: float = 1.0
    spare_seconds: float = 3600.0

    @property
    def caps(self) -> Caps:
        return Caps(self.rows, self.decoded_bytes)

    def cpu_seconds(self, size: int, facts: DeclaredFacts, registered: int = 0) -> int:
        """Compute the processor time for an upload of ``size`` bytes into the declared table.

        ``registered`` is the number of slots in all registers that are read.
        """
        cells = facts.slots * facts.rows_per_unit * (len(facts.columns) + 1)
        seconds = BASE_SECONDS + size / BYTES_A_SECOND + cells / CELLS_A_SECOND
        seconds += registered / REGISTERED_A_SECOND
        seconds += self.caps.of(size).decoded_bytes / DECODED_BYTES_A_SECOND
        return math.ceil(seconds * self.time_scale)

    def timeout_seconds(self, cpu_seconds: int) -> float:
        """Compute the limit of elapsed time, which includes waiting for a store."""
        return 2 * cpu_seconds + self.spare_seconds
