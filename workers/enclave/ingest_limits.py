"""What one ingestion may take: caps that the operator sets, and time that follows what everybody may know of it (W14).

Processor time judges the file, so it is generous: fifty times and more what files of any kind take on a slow core. It
keeps a file that was made to be slow from holding a worker for ever, and follows the upload's size and the declared
table, never a row.
"""

import math
from dataclasses import dataclass
from typing import Final

from app.inference.core.facts import DeclaredFacts
from workers.enclave.sources import Caps

BASE_SECONDS: Final = 600.0
BYTES_A_SECOND: Final = 1 << 20
"""Of the upload, which is opened, hashed and parsed."""
DECODED_BYTES_A_SECOND: Final = 16 << 20
"""Of what the upload may expand to."""
CELLS_A_SECOND: Final = 1e6
"""Of the table, which is written in all of its slots."""


@dataclass(frozen=True, slots=True)
class Limits:
    """``time_scale`` stretches time for slow machines. ``spare_seconds`` guard the worker: the child is ended that long
    after twice its processor time has gone by.
    """

    memory_bytes: int = 4 << 30  # of address space, of which the libraries take about a third of a gigabyte
    rows: int = 10**9
    decoded_bytes: int = 64 << 30
    time_scale: float = 1.0
    spare_seconds: float = 3600.0

    @property
    def caps(self) -> Caps:
        return Caps(self.rows, self.decoded_bytes)

    def cpu_seconds(self, size: int, facts: DeclaredFacts) -> int:
        """Processor time for an upload of ``size`` bytes into the declared table."""
        cells = facts.slots * facts.rows_per_unit * (len(facts.columns) + 1)
        seconds = BASE_SECONDS + size / BYTES_A_SECOND + cells / CELLS_A_SECOND
        seconds += self.caps.of(size).decoded_bytes / DECODED_BYTES_A_SECOND
        return math.ceil(seconds * self.time_scale)

    def timeout_seconds(self, cpu_seconds: int) -> float:
        """By the clock: a store may keep the child waiting."""
        return 2 * cpu_seconds + self.spare_seconds
