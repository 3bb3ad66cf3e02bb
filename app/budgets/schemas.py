"""Request and response bodies of budgets and ledgers."""

from datetime import datetime
from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field

from app.auth.schemas import KeyReference
from app.errors import LackingBudget
from app.http.requests.bodies import Body, ResponseBody

_HASH = "5f" * 32


class LimitBody(Body):
    """The new total limit. Above the highest limit so far, a tranche with the added epsilon opens."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"epsilon": 3.0, "delta": 1e-6}]})

    epsilon: Annotated[float, Field(gt=0)]
    """New limit on epsilon, never below the spent cost."""
    delta: Annotated[float, Field(gt=0, lt=1)] | None = None
    """Delta that a new tranche adds. Required above the highest limit of the account so far, and not used up to it.

    Left out for a lower limit."""


class UnfreezeBody(Body):
    """Request to end the freeze of an account."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"reason": "A fault of the service, now repaired."}]})

    reason: Annotated[str, Field(min_length=1, max_length=500)]
    """Why the freeze ends. The ledger and the audit log keep this text."""


class CostView(ResponseBody):
    """A privacy cost or limit (epsilon, delta)."""

    model_config = ConfigDict(from_attributes=True)

    epsilon: float
    """Epsilon of differential privacy, at the delta below."""
    delta: float
    """Delta of differential privacy."""


class JobCounts(ResponseBody):
    """Numbers of jobs of the whole account."""

    model_config = ConfigDict(from_attributes=True)

    settled: int
    """Jobs that were charged."""
    reserved: int
    """Jobs that hold a reservation, because they have not ended."""
    refused: int
    """Jobs that were refused because the budget did not cover them."""


class AllocationView(ResponseBody):
    """The part of the dataset's limit that one caller may spend."""

    model_config = ConfigDict(from_attributes=True)

    key_id: str
    """Id of the caller's key."""
    limit: CostView
    """The most that the caller's jobs may cost together."""
    spent: CostView
    """Composed cost of the caller's jobs that opened the data."""
    reserved: CostView
    """Cost that the caller's open reservations add to `spent`."""


class BudgetView(ResponseBody):
    """The budget of a dataset and the balance of its population's account.

    Costs compose sublinearly, so `spent`, `reserved` and `remaining` do not sum to `limit`.
    """

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
    """Id of the dataset."""
    population: str
    """Name of the population. Datasets about the same people share its account."""
    accountant: str
    """Accountant that composes the costs; `rdp`: Rényi differential privacy."""
    relation: str
    """Neighbouring relation; `zero_out`: one unit is replaced by null rows."""
    unit: str
    """Privacy unit: `row`, or `column` for all rows with one value of a column."""
    slots: int
    """Public number of units to which the table is padded."""
    limit: CostView
    """The most that all jobs on the dataset may cost together."""
    spent: CostView
    """Composed cost of all jobs that opened the data."""
    reserved: CostView
    """Cost that open reservations add to `spent`; `spent + reserved` is the composed total."""
    remaining: CostView
    """Cost of the largest single full-batch job that would still be admitted, at the delta of the account.

    A limit above the highest so far adds delta, at which the same noise has a smaller epsilon. So this number may then
    fall a little, although every job keeps its room."""
    used_share: float
    """Share of the account's limit that is used or reserved, at the accountant's main order; from 0 to 1."""
    jobs: JobCounts
    """Numbers of charged, reserved and refused jobs."""
    version: int
    """Sequence number of the account's newest entry; each change of the account raises it."""
    allocations: list[AllocationView] | None = None
    """Allocations that the caller may see: all, or only the caller's; absent if there is none."""


class RefusalView(ResponseBody):
    """Jobs of one key that the budget did not cover. They cost nothing and are not in the chain."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "at": "2029-01-31T12:00:00Z",
                    "dataset_id": "ds_01jd0000000000000000000000",
                    "dataset_name": "adult",
                    "submitted_by": {"id": "key_01jd0000000000000000000000", "name": "jane@example.org"},
                    "count": 1,
                    "reason": "limit",
                }
            ]
        },
    )

    at: datetime
    """Time of the refusal, or of the first of several."""
    dataset_id: str
    """Id of the dataset that the jobs name."""
    dataset_name: str | None
    """Name of that dataset."""
    submitted_by: KeyReference | None
    """The key that submitted the jobs."""
    count: int
    """Number of jobs that were refused, within about a minute."""
    reason: LackingBudget | None
    """Why they were refused, as in quotes; null for refusals that an earlier version recorded.

    `limit`: the account's limit did not cover them. `cap`: the dataset's limit within the account. `allocation`: the
    key's part of the dataset's limit. If several did not, it is the first of these."""


class EntryView(ResponseBody):
    """One entry of the account's hash chain."""

    model_config = ConfigDict(
        from_attributes=True,
        json_schema_extra={
            "examples": [
                {
                    "sequence": 1,
                    "at": "2029-01-31T12:00:00Z",
                    "kind": "account_opened",
                    "dataset_id": "ds_01jd0000000000000000000000",
                    "dataset_name": "adult",
                    "job_id": None,
                    "submitted_by": None,
                    "purpose": None,
                    "event": None,
                    "epsilon_after": 0.0,
                    "entry_hash": _HASH,
                    "previous_hash": _HASH,
                }
            ]
        },
    )

    sequence: int
    """Position in the account's chain, starting at 1."""
    at: datetime
    """Time of the entry."""
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
        "people_registered",
    ]
    """Kind of the entry."""
    dataset_id: str
    """Id of the dataset that the entry is about."""
    dataset_name: str | None
    """Name of that dataset; null if it does not exist."""
    job_id: str | None
    """Id of the job that the entry is about; null for entries about the account."""
    submitted_by: KeyReference | None
    """The key that submitted that job; null for entries about the account."""
    purpose: str | None
    """Why that job is run, as its submitter stated it; null if not stated. The chain does not contain it."""
    event: dict[str, Any] | None
    """Details of the entry: for a job, the privacy events that were reserved or ran; else the details of the change."""
    epsilon_after: float
    """Composed cost of the account after this entry, at the account's delta."""
    entry_hash: str
    """Hash of this entry, in hexadecimal."""
    previous_hash: str
    """Hash of the entry before it in the account's chain, in hexadecimal."""
    cause: Literal["run", "mismatch", "unknown"] | None = Field(default=None, exclude_if=lambda cause: cause is None)
    """Why the account was frozen; absent in entries of other kinds.

    `run`: a run failed after it opened the data. `mismatch`: stored data did not verify. `unknown`: no cause was
    recorded, as in entries of earlier versions. An administrator may end only a freeze by a run.
    """
