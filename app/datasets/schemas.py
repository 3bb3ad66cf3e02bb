"""Bodies of the datasets' endpoints."""

from datetime import datetime
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from app.datasets.columns import MAX_COLUMNS, ColumnBody, ColumnName
from app.http.errors.validation_errors import KEY_ID
from app.http.requests.bodies import Body

MAX_SHARES = 1000
KeyId = Annotated[str, Field(pattern=KEY_ID)]
Shares = Annotated[list[KeyId], Field(max_length=MAX_SHARES)]
Description = Annotated[str, Field(max_length=10_000)]

EXAMPLE_DECLARATION: dict[str, Any] = {
    "name": "adult",
    "description": "Census extract, one row a person.",
    "sensitivity": "private",
    "population": "census-1994",
    "columns": [
        {"name": "age", "type": "integer", "lower": 17, "upper": 90, "missing": {"impute": 38}},
        {"name": "hours", "type": "real", "lower": 1, "upper": 99},
        {"name": "sex", "type": "categorical", "categories": ["Female", "Male"]},
        {"name": "income_gt_50k", "type": "binary"},
    ],
    "privacy_unit": {"kind": "row"},
    "slots": 33000,
    "budget": {"epsilon": 2.0, "delta": 1e-6},
    "shared_with": ["key_01jd0000000000000000000000"],
    "releases_public": True,
}


_PATCH: dict[str, Any] = {
    "shared_with": ["key_01jd0000000000000000000000"],
    "allocations": [{"key_id": "key_01jd0000000000000000000000", "epsilon": 0.5}],
    "releases_public": False,
}


class RowUnit(Body):
    """One row is one unit."""

    kind: Literal["row"]


class ColumnUnit(Body):
    """All rows with the same value of ``column`` are one unit, of which ``max_rows`` rows, drawn by lot, are kept.

    A row whose value is missing, or outside its declaration, is null. The column itself is not stored.
    """

    kind: Literal["column"]
    column: ColumnName
    max_rows: Annotated[int, Field(ge=1)]


class BudgetBody(Body):
    """A limit. Without ``delta``: 1e-6, or 1/(10·slots) where that is smaller."""

    epsilon: float
    delta: float | None = None


class DatasetBody(Body):
    """A declaration: all that planning may ever know of the table."""

    model_config = ConfigDict(json_schema_extra={"examples": [EXAMPLE_DECLARATION]})

    name: Annotated[str, Field(min_length=1, max_length=200)]
    description: Description = ""
    sensitivity: Literal["private", "public"]
    population: Annotated[str, Field(min_length=1, max_length=200)] | None = None
    columns: Annotated[list[ColumnBody], Field(min_length=1, max_length=MAX_COLUMNS)]
    privacy_unit: Annotated[RowUnit | ColumnUnit, Field(discriminator="kind")]
    slots: Annotated[int, Field(ge=1)]
    budget: BudgetBody | None = None
    shared_with: Shares = []
    releases_public: bool = True


class AllocationBody(Body):
    """What one key may spend of the dataset's limit."""

    key_id: KeyId
    epsilon: Annotated[float, Field(gt=0)]


class DatasetPatch(Body):
    """What an owner may change; absent members stay as they are."""

    model_config = ConfigDict(json_schema_extra={"examples": [_PATCH]})

    description: Description = ""
    shared_with: Shares = []
    allocations: Annotated[list[AllocationBody], Field(max_length=MAX_SHARES)] = []
    releases_public: bool = True


class Limit(BaseModel):
    """What all releases together may cost."""

    epsilon: float
    delta: float


class ContentView(BaseModel):
    """A content version; analysts see the last ready one only.

    ``rejection_columns`` is there where the rejection is about columns: the declared ones that are missing or of a type
    that cannot be the declared one, or those of the header that are not declared. At most 20 names, of 64 characters.
    """

    version: int
    status: Literal["received", "ready", "rejected"]
    rejection: str | None
    rejection_columns: list[str] | None = Field(default=None, exclude_if=lambda names: names is None)


_SHOWN: dict[str, Any] = {
    "id": "ds_01jd0000000000000000000000",
    **EXAMPLE_DECLARATION,
    "status": "ready",
    "content": {"version": 1, "status": "ready", "rejection": None},
    "created_at": "2029-01-31T12:00:00Z",
}


class DatasetView(BaseModel):
    """Declared facts and whether there is a content; never anything that was read from rows."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{name: value for name, value in _SHOWN.items() if name != "shared_with"}]}
    )

    id: str
    name: str
    description: str
    sensitivity: Literal["private", "public"]
    population: str
    columns: list[dict[str, Any]]
    privacy_unit: dict[str, Any]
    slots: int
    budget: Limit | None
    releases_public: bool
    status: Literal["created", "received", "ready", "rejected", "deleted"]
    content: ContentView | None
    created_at: datetime


class DatasetDetail(DatasetView):
    """What owner, auditor and administrator see on top of the declared facts."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    **_SHOWN,
                    "content_received_at": "2029-01-31T12:00:01Z",
                    "content_ended_at": "2029-01-31T12:00:02Z",
                    "deleted_at": None,
                }
            ]
        }
    )

    shared_with: list[str]
    content_received_at: datetime | None
    content_ended_at: datetime | None
    deleted_at: datetime | None


class DeletionReceipt(BaseModel):
    """Signed with the ledger key, which ``GET /v1/keys`` publishes."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "statement": {
                        "kind": "corevault.dataset_deletion",
                        "dataset_id": "ds_01jd0000000000000000000000",
                        "population": "census-1994",
                        "deleted_at": "2029-01-31T12:00:00Z",
                        "key_destroyed": True,
                        "content_versions": [1],
                        "ledger_kept": True,
                        "backup_horizon_days": 0,
                        "backups": "The service makes no backups, …",
                    },
                    "signature": "…",
                    "key_id": "ed25519:0123456789abcdef",
                }
            ]
        }
    )

    statement: dict[str, Any]
    signature: str
    key_id: str
