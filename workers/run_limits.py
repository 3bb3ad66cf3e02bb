"""Limits of time and memory of one run.

They follow from its plan and declared facts, never from a row (W14). They are generous: a hundred times the time that a
run takes on a slow machine, and ten times its memory. Only a fault of the machine or of the software should reach them.
A run over its soft limits stops itself at its next step. A run over its hard limits is ended with its process. In both
cases it has failed and is charged like any failed run.
"""

import os
import resource
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from app.inference.conjugate import make_run_problem
from app.inference.conjugate.documents import SWEEPS
from app.inference.conjugate.topics import LatentDirichlet
from app.inference.core.facts import DeclaredFacts
from app.inference.core.grouping import GroupedModel
from app.inference.core.model import RowModel
from app.inference.core.plan import MechanismPlan, PlannedQuery
from app.inference.private_zone.rows import RESIDENT_BYTES

BASE_SECONDS = 600.0
BASE_BYTES = 1 << 30
OPERATIONS_A_SECOND = 1e7
CELLS_A_SECOND = 1e6
"""The least number of cells of a sealed table that a machine opens in a second."""

NOISE_OPERATIONS = 12_000.0
"""Operations in the time of one value of noise, which is 12 microseconds."""
_WORD_OPERATIONS = 400.0
"""Operations on one word of a document that do not depend on the number of topics."""

_VALUE_BYTES = 32.0
"""Bytes of a value of a row in single precision, with temporary arrays. All rows of a unit are in memory at once."""

_ENDGAME_STEPS = 100
_PUBLIC_PROJECTIONS = 1024
_SPARE_ADDRESSES = 4 << 30
_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
_SIZE, _RESIDENT = 0, 1
"""Places in ``/proc/self/statm``."""


@dataclass(frozen=True, slots=True)
class RunLimits:
    """The limits of one attempt.

    Attributes:
        seconds: the soft limit of time.
        memory_bytes: the soft limit of memory that the process takes in addition to the memory it had before.
    """

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
        """The hard limit of address space; libraries reserve more of it than they use."""
        return self.hard_bytes + _SPARE_ADDRESSES


def compute_run_limits(plan: MechanismPlan, facts: DeclaredFacts, scale: float = 1.0) -> RunLimits:
    """Compute the limits of an attempt at ``plan`` on a table of these facts.

    ``scale`` multiplies all limits, for slower machines.
    """
    rows = float(facts.slots * facts.rows_per_unit)
    model = make_run_problem(plan, facts).model
    width = model.row_width
    if not plan.queries:
        operations = (plan.steps + 1.0) * rows * width * _PUBLIC_PROJECTIONS
        row_bytes = rows * (64.0 * 8 * width + 8 * _PUBLIC_PROJECTIONS)
        return _scale_limits(operations, rows * width, row_bytes + 8.0 * plan.size * width, scale)
    longest = plan.answer_length
    shares = [(query.event.sampling_rate * query.count, query.length) for query in plan.queries]
    each = facts.rows_per_unit
    work = [_count_operations(query, model, each) for query in plan.queries]
    operations = sum(share * rows * one for (share, _), one in zip(shares, work, strict=True))
    operations += NOISE_OPERATIONS * float(sum(query.count * query.length for query in plan.queries))
    operations += (plan.steps + _ENDGAME_STEPS) * float(width * (plan.size * (longest + width) + width**2))
    cells = rows * width * sum(share for share, _ in shares)
    row_bytes = 4.0 * min(RESIDENT_BYTES, rows * (4 * width + 1)) + 32 * rows
    point_bytes = 64.0 * (plan.size * (longest + width) + longest + width**2)
    unit_bytes = _VALUE_BYTES * each * float(width + max(_count_values(query, model) for query in plan.queries))
    return _scale_limits(operations, cells, row_bytes + point_bytes + unit_bytes, scale)


def _count_operations(query: PlannedQuery, model: RowModel, each: int) -> float:
    """Count the operations on one row, of units of ``each`` rows.

    Most queries compute all values of the answer from each row. A word is compared with all topics in every sweep, and
    with the other words of its document. A row of a group has the values of that group alone; adding them up compares
    it with each group, or with the other rows of its unit.
    """
    if isinstance(model, LatentDirichlet):
        return _WORD_OPERATIONS + 2.0 * SWEEPS * model.topics + each
    width, length = model.row_width, query.length
    if isinstance(model, GroupedModel):
        draws = length // model.groups
        return width * float(draws + width) + (1 + draws) * float(model.groups + min(each, model.groups))
    return width * float(length + width)


def _count_values(query: PlannedQuery, model: RowModel) -> int:
    """Count the values that a query computes from one row; a row also marks its group among all."""
    if isinstance(model, LatentDirichlet):
        return model.topics
    if isinstance(model, GroupedModel):
        return query.length // model.groups + model.groups
    return query.length


def _scale_limits(operations: float, cells: float, memory_bytes: float, scale: float) -> RunLimits:
    seconds = BASE_SECONDS + operations / OPERATIONS_A_SECOND + cells / CELLS_A_SECOND
    return RunLimits(seconds * scale, int((BASE_BYTES + memory_bytes) * scale))


@contextmanager
def confine(limits: RunLimits) -> Iterator[None]:
    """Let the kernel enforce the hard limits on this process.

    This also works if a fault blocks every thread of the process. The kernel refuses memory beyond the limit, and ends
    the process after more processor time than the limit. Only for processes that carry out one run at a time.
    """
    used = resource.getrusage(resource.RUSAGE_SELF)
    seconds = int(used.ru_utime + used.ru_stime + 2 * limits.hard_seconds) + 1
    wanted = {resource.RLIMIT_AS: _read_statm(_SIZE) + limits.address_bytes, resource.RLIMIT_CPU: seconds}
    before = {kind: resource.getrlimit(kind) for kind in wanted}
    try:
        for kind, value in wanted.items():
            hard = before[kind][1]
            resource.setrlimit(kind, (value if hard == resource.RLIM_INFINITY else min(value, hard), hard))
        yield
    finally:
        for kind, pair in before.items():
            resource.setrlimit(kind, pair)


def read_resident_bytes() -> int:
    """Return the memory that this process takes up now."""
    return _read_statm(_RESIDENT)


def _read_statm(place: int) -> int:
    with Path("/proc/self/statm").open() as file:
        return int(file.read().split()[place]) * _PAGE_BYTES
