"""Budgets and ledgers as callers see them."""

from datetime import datetime
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from app.http.requests.bodies import Body

_HASH = "5f" * 32


class LimitBody(Body):
    """The new total. A raise opens a tranche with the difference in epsilon and this delta."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"epsilon": 3.0, "delta": 1e-6}]})

    epsilon: Annotated[float, Field(gt=0)]
    delta: Annotated[float, Field(gt=0, lt=1)] | None = None


class UnfreezeBody(Body):
    """Why the freeze is ended; the ledger and the audit log keep it."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"reason": "A fault of the service, since mended."}]})

    reason: Annotated[str, Field(min_length=1, max_length=500)]


class CostView(BaseModel):
    """An (epsilon, delta) pair, priced by the account's accountant."""

    model_config = ConfigDict(from_attributes=True)

    epsilon: float
    delta: float


class JobCounts(BaseModel):
    """Of the whole account; ``reserved`` are those that have not ended."""

    model_config = ConfigDict(from_attributes=True)

    settled: int
    reserved: int
    refused: int


class AllocationView(BaseModel):
    """What one key may spend of the dataset's limit, and has spent."""

    model_config = ConfigDict(from_attributes=True)

    key_id: str
    limit: CostView
    spent: CostView
    reserved: CostView


class BudgetView(BaseModel):
    """Costs compose sublinearly, so spent, reserved and remaining do not sum to the limit."""

    model_config = ConfigDict(
        from_attributes=True,
        json_schema_extra={
            "examples": [
                {
                    "dataset_id": "ds_01jd0000000000000000000000",
                    "population": "census-1994",
                    "accountant": "rdp",
                    "relation": "zero_out",
                    "unit": "row",
                    "slots": 33000,
                    "limit": {"epsilon": 2.0, "delta": 1e-6},
                    "spent": {"epsilon": 0.61, "delta": 1e-6},
                    "reserved": {"epsilon": 0.0, "delta": 1e-6},
                    "remaining": {"epsilon": 1.87, "delta": 1e-6},
                    "used_share": 0.21,
                    "jobs": {"settled": 3, "reserved": 0, "refused": 1},
                    "version": 7,
                }
            ]
        },
    )

    dataset_id: str
    population: str
    accountant: str
    relation: str
    unit: str
    slots: int
    limit: CostView
    spent: CostView
    reserved: CostView
    remaining: CostView
    used_share: float
    jobs: JobCounts
    version: int
    allocations: list[AllocationView] | None = None


class EntryView(BaseModel):
    """One link of the account's chain."""

    model_config = ConfigDict(
        from_attributes=True,
        json_schema_extra={
            "examples": [
                {
                    "sequence": 1,
                    "at": "2029-01-31T12:00:00Z",
                    "kind": "account_opened",
                    "job_id": None,
                    "event": None,
                    "epsilon_after": 0.0,
                    "entry_hash": _HASH,
                    "previous_hash": _HASH,
                }
            ]
        },
    )

    sequence: int
    at: datetime
    kind: Literal[
        "account_opened",
        "reserved",
        "opened",
        "settled",
        "voided",
        "limit_changed",
        "content_replaced",
        "dataset_deleted",
        "frozen",
        "unfrozen",
    ]
    job_id: str | None
    event: dict[str, Any] | None
    epsilon_after: float
    entry_hash: str
    previous_hash: str
