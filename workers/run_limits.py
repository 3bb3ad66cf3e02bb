"""What one run may take: time and memory that follow its plan and declared facts, and never a row (W14).

They are generous, a hundred times what a run takes on a slow machine and ten times its memory, since nothing but a
fault of the machine or of ours should ever meet them. A run that is over its soft limits stops itself at its next step;
one that is over its hard limits is ended with its process. Either way it has failed and is charged, like any other.
"""

import os
import resource
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from app.inference.core.facts import DeclaredFacts
from app.inference.core.plan import MechanismPlan
from app.inference.core.problems import problem_for
from app.inference.private_zone.rows import RESIDENT_BYTES

BASE_SECONDS = 600.0
BASE_BYTES = 1 << 30
OPERATIONS_A_SECOND = 1e7
CELLS_A_SECOND = 1e6
"""Cells of a sealed table that are opened in a second, at the very least."""

_ENDGAME_STEPS = 100
_PUBLIC_PROJECTIONS = 1024
_SPARE_ADDRESSES = 4 << 30
_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
_SIZE, _RESIDENT = 0, 1
"""Places in ``/proc/self/statm``."""


@dataclass(frozen=True, slots=True)
class RunLimits:
    """``seconds`` and ``memory_bytes`` are the soft limits; memory is counted from what the process had before."""

    seconds: float
    memory_bytes: int

    @property
    def hard_seconds(self) -> float:
        return 2 * self.seconds + 60

    @property
    def hard_bytes(self) -> int:
        return 2 * self.memory_bytes

    @property
    def address_bytes(self) -> int:
        """Libraries reserve more addresses than they use."""
        return self.hard_bytes + _SPARE_ADDRESSES


def run_limits(plan: MechanismPlan, facts: DeclaredFacts, scale: float = 1.0) -> RunLimits:
    """The limits of an attempt at ``plan`` on a table of these facts; ``scale`` suits them to the machine."""
    rows = float(facts.slots * facts.rows_per_unit)
    width = problem_for(plan.model, facts).model.row_width
    if not plan.queries:
        operations = (plan.steps + 1.0) * rows * width * _PUBLIC_PROJECTIONS
        held = rows * (64.0 * 8 * width + 8 * _PUBLIC_PROJECTIONS)
        return _limits(operations, rows * width, held + 8.0 * plan.size * width, scale)
    longest = plan.answer_length
    shares = [(query.event.sampling_rate * query.count, query.length) for query in plan.queries]
    operations = sum(share * rows * width * (length + width) for share, length in shares)
    operations += (plan.steps + _ENDGAME_STEPS) * float(width * (plan.size * (longest + width) + width**2))
    read = rows * width * sum(share for share, _ in shares)
    held = 4.0 * min(RESIDENT_BYTES, rows * (4 * width + 1)) + 32 * rows
    return _limits(operations, read, held + 64.0 * (plan.size * (longest + width) + longest + width**2), scale)


def _limits(operations: float, cells: float, held_bytes: float, scale: float) -> RunLimits:
    seconds = BASE_SECONDS + operations / OPERATIONS_A_SECOND + cells / CELLS_A_SECOND
    return RunLimits(seconds * scale, int((BASE_BYTES + held_bytes) * scale))


@contextmanager
def confine(limits: RunLimits) -> Iterator[None]:
    """Have the kernel hold this process to the hard limits, for what holds up every thread of it.

    Memory beyond them is refused; after more processor time than they allow, the process ends. For processes that carry
    out one run at a time.
    """
    used = resource.getrusage(resource.RUSAGE_SELF)
    seconds = int(used.ru_utime + used.ru_stime + 2 * limits.hard_seconds) + 1
    wanted = {resource.RLIMIT_AS: _statm(_SIZE) + limits.address_bytes, resource.RLIMIT_CPU: seconds}
    before = {kind: resource.getrlimit(kind) for kind in wanted}
    try:
        for kind, value in wanted.items():
            hard = before[kind][1]
            resource.setrlimit(kind, (value if hard == resource.RLIM_INFINITY else min(value, hard), hard))
        yield
    finally:
        for kind, pair in before.items():
            resource.setrlimit(kind, pair)


def resident_bytes() -> int:
    """Memory that this process takes up now."""
    return _statm(_RESIDENT)


def _statm(place: int) -> int:
    with Path("/proc/self/statm").open() as file:
        return int(file.read().split()[place]) * _PAGE_BYTES
