"""Sequential coreset Monte Carlo as a method for public tables.

The rows are a stream, in the order of the table. The release has the points of the memory after the last row. A memory
of all rows leaves all rows, so it is no choice here: every memory is one if the size is at least the number of rows.
The belief has the particles after the last row, as a block.
"""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, Final

import numpy as np

from app.errors import InvalidRequest
from app.inference.core.belief import PARTICLES as PARTICLE_LAW
from app.inference.core.belief import make_block
from app.inference.core.capabilities import Artefact, Capability
from app.inference.core.facts import DeclaredFacts
from app.inference.core.knobs import Choice, Knob, Parameter
from app.inference.core.model import Array64
from app.inference.core.plan import MechanismPlan, PlanRequest
from app.inference.core.problems import Problem, make_problem, name_parameters
from app.inference.core.release import Pseudocoreset
from app.inference.core.row_source import RowSource
from app.inference.methods.psvi.residuals import Points
from app.inference.methods.public import open_table, plan_public, release
from app.inference.methods.public_table import PublicTable
from app.inference.methods.scmc.filtering import Counts, Filter, State
from app.inference.methods.scmc.memory import Indices, compress_to_coreset, compress_to_reservoir
from app.inference.methods.scmc.particles import normalise
from app.inference.post.diagnostics import round_stated

MAX_SIZE: Final = 1_000  # one compression of a memory takes time proportional to its cube
MEMORIES: Final = {"coreset": compress_to_coreset, "reservoir": compress_to_reservoir}
MEMORY = Choice(
    "memory",
    tuple(MEMORIES),
    "The rows that stay in memory. coreset: rows with fitted weights. reservoir: a uniform sample with equal weights.",
    "coreset",
)
BATCH = Parameter("batch", "integer", 1, 1000, "Number of rows that arrive at once.", 20)
PARTICLES = Parameter(
    "particles", "integer", 4, 5000, "Number of weighted parameter draws; at least two for each parameter.", 400
)
MOVES = Parameter("moves", "integer", 1, 100, "Number of Metropolis steps after each resampling.", 8)


class Scmc:
    """The registered method; stateless."""

    id = "scmc"
    description = "Coreset of a stream of rows, compressed batch by batch at particles of the posterior. Not private."
    private = False
    needs = frozenset({Capability.POTENTIALS})
    leaves = Artefact.POINTS
    parameters: tuple[Knob, ...] = (MEMORY, BATCH, PARTICLES, MOVES)

    def plan(self, request: PlanRequest, facts: DeclaredFacts) -> MechanismPlan:
        """Plan as :func:`app.inference.methods.public.plan_public`; refuse too few particles for the model."""
        plan = plan_public(self, request, facts, largest=MAX_SIZE)
        least = 2 * make_problem(request.model, facts).model.dimension
        if plan.parameters[PARTICLES.name] < least:
            raise InvalidRequest.at(
                f"/parameters/{PARTICLES.name}", f"This model has {least // 2} parameters; use at least {least}."
            )
        return plan

    def build(
        self, plan: MechanismPlan, facts: DeclaredFacts, rows: RowSource, rng: np.random.Generator
    ) -> Pseudocoreset:
        """Release the memory after the last row, followed by null points."""
        problem, table = open_table(plan, facts, rows)
        parameters = plan.parameters
        model_filter = Filter(
            problem.model, problem.prior, MEMORIES[parameters[MEMORY.name]](plan.size), parameters[MOVES.name]
        )
        state = run_filter(
            model_filter, problem, table, rng, batch=parameters[BATCH.name], particles=parameters[PARTICLES.name]
        )
        x, y = table.read(state.memory.indices)
        points = Points(x.astype(np.float64), y, state.memory.weights)
        released = release(problem, table, points, plan.size, _describe(state.counts, len(x)))
        arrays = {"draws": state.particles, "weight": normalise(state.log_weights)}
        return replace(released, further=(make_block("particles", PARTICLE_LAW, name_parameters(problem), arrays),))


def run_filter(
    model_filter: Filter, problem: Problem, table: PublicTable, rng: np.random.Generator, *, batch: int, particles: int
) -> State:
    """Filter the rows of ``table`` in their order."""
    state = model_filter.init(rng, particles, problem.model.row_width)
    for indices, rows in _list_batches(problem, table, batch):
        state = model_filter.step(rng, state, indices, rows)
    return state


def _list_batches(problem: Problem, table: PublicTable, batch: int) -> Iterator[tuple[Indices, Array64]]:
    """Yield the table's rows, folded; the last batch of a chunk may be shorter."""
    first = 0
    for x, y in table.chunks():
        rows = np.asarray(problem.model.fold(x.astype(np.float64), y))
        for start in range(0, len(rows), batch):
            part = rows[start : start + batch]
            yield np.arange(first + start, first + start + len(part)), part
        first += len(rows)


def _describe(counts: Counts, rows: int) -> dict[str, Any]:
    return {
        "rows": rows,
        "resamplings": counts.resamplings,
        "accepted_moves": round_stated(counts.accepted / max(counts.proposed, 1)),
        "likelihood_evaluations": counts.evaluations,
    }
