"""Uniform subsampling (method id ``uniform``): M rows uniformly, weights N/M. Not private: for public tables only."""

import numpy as np
from numpy.typing import NDArray

from app.errors import InvalidRequest, MethodNotAllowedOnPrivateData
from app.inference.problems import model_for
from app.inference.protocol import (
    PRESENT,
    Array64,
    DeclaredFacts,
    MechanismPlan,
    Parameter,
    PlanRequest,
    Pseudocoreset,
    RowSource,
)

MAX_SIZE = 10_000
_CHUNK = 65_536


class Uniform:
    """The registered method; stateless."""

    id = "uniform"
    description = "Rows chosen uniformly, with equal weights. Not private."
    private = False
    parameters: tuple[Parameter, ...] = ()

    def plan(self, request: PlanRequest, facts: DeclaredFacts) -> MechanismPlan:
        """A plan without a mechanism or a price. What the request says of privacy does not concern this method.

        Raises:
            MethodNotAllowedOnPrivateData: on any table that is not public.
            InvalidRequest: pointing at the member of the request that is at fault.
        """
        if facts.sensitivity != "public":
            raise MethodNotAllowedOnPrivateData
        if isinstance(request.size, bool) or not 1 <= request.size <= MAX_SIZE:
            raise InvalidRequest.at("/size", f"must be at least 1 and at most {MAX_SIZE}")
        if request.parameters:
            raise InvalidRequest.at("/parameters", "this method takes none")
        model_for(request.model, facts)
        return MechanismPlan(
            method=self.id,
            size=request.size,
            model=request.model,
            parameters={},
            mechanism=None,
            clipping="none",
            grid_bits=0,
            queries=(),
            steps=1,
        )

    def build(
        self, plan: MechanismPlan, facts: DeclaredFacts, rows: RowSource, rng: np.random.Generator
    ) -> Pseudocoreset:
        """M of the N present rows, without replacement while they last; with no rows at all, weights of zero."""
        design = model_for(plan.model, facts).design
        present = _present(rows)
        chosen = _choose(rng, present, plan.size)
        order = np.unique(chosen, return_inverse=True)
        x, y, _ = design.encode(rows.gather(order[0]))
        weight = np.full(plan.size, len(present) / plan.size)
        u: Array64 = x[order[1]].astype(np.float64)
        if design.intercept:
            u[:, -1] = 1
        targets = None if design.target is None else y[order[1]].astype(np.float64)
        return Pseudocoreset(u, targets, weight, design.columns)


def _present(rows: RowSource) -> NDArray[np.int64]:
    """The slots that hold a row."""
    chunks = (np.arange(start, min(start + _CHUNK, rows.slots)) for start in range(0, rows.slots, _CHUNK))
    return np.concatenate([chunk[rows.gather(chunk)[PRESENT] > 0] for chunk in chunks])


def _choose(rng: np.random.Generator, present: NDArray[np.int64], size: int) -> NDArray[np.int64]:
    if not len(present):
        return np.zeros(size, dtype=np.int64)
    return rng.choice(present, size=size, replace=size > len(present))
