"""Request and response bodies of the dataset endpoints."""

from datetime import datetime
from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field

from app.auth.schemas import KeyReference
from app.datasets.columns import MAX_COLUMNS, ColumnBody, ColumnName
from app.http.errors.validation_errors import KEY_ID
from app.http.requests.bodies import Body, ResponseBody

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
    """Each row is one privacy unit."""

    kind: Literal["row"]
    """Kind of the privacy unit."""


class ColumnUnit(Body):
    """All rows with the same value of ``column`` are one unit.

    If a unit has more than ``max_rows`` rows, a random choice of ``max_rows`` rows is kept. A row is null if its value
    is missing or not a declared value. The column itself is not stored.
    """

    kind: Literal["column"]
    """Kind of the privacy unit."""
    column: ColumnName
    """Name of the declared column that identifies the unit."""
    max_rows: Annotated[int, Field(ge=1)]
    """Most rows of one unit that are kept."""


class BudgetBody(Body):
    """A limit on all releases together.

    The default of ``delta`` is 1e-6, or 1/(10·slots) where that is smaller.
    """

    epsilon: float
    """Limit on epsilon."""
    delta: float | None = None
    """Limit on delta; null: 1e-6, or 1/(10·slots) if that is smaller."""


class DatasetBody(Body):
    """A declaration of a table: the public facts that planning uses."""

    model_config = ConfigDict(json_schema_extra={"examples": [EXAMPLE_DECLARATION]})

    name: Annotated[str, Field(min_length=1, max_length=200)]
    """Name of the dataset."""
    description: Description = ""
    """Description for the people who use the dataset."""
    sensitivity: Literal["private", "public"]
    """`private`: differential privacy applies. `public`: the data is public already, so nothing is charged."""
    population: Annotated[str, Field(min_length=1, max_length=200)] | None = None
    """Name of the people in the table; null: a separate population.

    Datasets about the same people name the same population. They share one account.
    """
    series: Annotated[str, Field(min_length=1, max_length=200)] | None = None
    """Name of a series of your datasets in which each person counts once; null: no series.

    A person's rows become null in every dataset of the series but the first one that received them. Each dataset of a
    series is private and has a separate population. Its privacy unit is the same declared column in all of them.
    """
    columns: Annotated[list[ColumnBody], Field(min_length=1, max_length=MAX_COLUMNS)]
    """Declared columns with their types, bounds and categories. Nothing is inferred from rows."""
    privacy_unit: Annotated[RowUnit | ColumnUnit, Field(discriminator="kind")]
    """The privacy unit that differential privacy protects: a row, or all rows of one person."""
    slots: Annotated[int, Field(ge=1)]
    """Public number of units to which the table is padded."""
    budget: BudgetBody | None = None
    """Limit on the privacy cost; null for public data."""
    shared_with: Shares = []
    """Ids of the keys that may use the dataset."""
    releases_public: bool = True
    """Whether releases can be read without an API key."""


class AllocationBody(Body):
    """The part of the dataset's budget that one API key may spend."""

    key_id: KeyId
    """Id of the key."""
    epsilon: Annotated[float, Field(gt=0)]
    """The most that the key's jobs may cost together."""


class DatasetPatch(Body):
    """Members that the owner may change; absent members stay as they are."""

    model_config = ConfigDict(json_schema_extra={"examples": [_PATCH]})

    description: Description = ""
    """New description."""
    shared_with: Shares = []
    """New list of the keys that may use the dataset; it replaces the old one."""
    allocations: Annotated[list[AllocationBody], Field(max_length=MAX_SHARES)] = []
    """New list of allocations; it replaces the old one."""
    releases_public: bool = True
    """Whether later releases can be read without an API key. Earlier releases keep their setting."""


class Limit(ResponseBody):
    """The largest cost that all releases together may have."""

    model_config = ConfigDict(from_attributes=True)

    epsilon: float
    """Limit on epsilon."""
    delta: float
    """Limit on delta."""


class CostOfDataset(ResponseBody):
    """A privacy cost, in the words of `GET /v1/datasets/{dataset_id}/budget`."""

    model_config = ConfigDict(from_attributes=True)

    epsilon: float
    """Epsilon of differential privacy, at the delta below."""
    delta: float
    """Delta of differential privacy."""


class ContentView(ResponseBody):
    """A content version; analysts see only the last ready one."""

    version: int
    """Number of the version, starting at 1."""
    status: Literal["received", "ready", "rejected"]
    """`received`: being read. `ready`: in use. `rejected`: not usable."""
    rejection: str | None
    """Code of the reason for a rejection; null otherwise."""
    rejection_columns: list[str] | None = Field(
        default=None, exclude_if=lambda names: names is None, json_schema_extra={"deprecated": True}
    )
    """As `rejection.columns` of the dataset; absent if columns were not the cause. Use that one."""


class RejectionView(ResponseBody):
    """Why the newest content was rejected."""

    code: str
    """Code of the reason, as in `content.rejection`."""
    columns: list[str]
    """Columns that caused the rejection; empty if columns were not the cause.

    They are declared columns that are missing or have another type, or columns of the header that are not declared.
    At most 20 names, each cut to 64 characters.
    """


_SHOWN: dict[str, Any] = {
    "id": "ds_01jd0000000000000000000000",
    "owner": {"id": "key_01jd0000000000000000000001", "name": "Statistics office"},
    **EXAMPLE_DECLARATION,
    "spent": {"epsilon": 0.61, "delta": 1e-6},
    "reserved": {"epsilon": 0.0, "delta": 1e-6},
    "remaining": {"epsilon": 1.87, "delta": 1e-6},
    "status": "ready",
    "content": {"version": 1, "status": "ready", "rejection": None},
    "created_at": "2029-01-31T12:00:00Z",
}

_SHOWN_TO_OWNER: dict[str, Any] = {
    **_SHOWN,
    "content_received_at": "2029-01-31T12:00:01Z",
    "content_ended_at": "2029-01-31T12:00:02Z",
    "deleted_at": None,
}
_EXAMPLE_WARNING: dict[str, Any] = {
    "code": "weak_guarantee",
    "pointer": "/budget/epsilon",
    "message": "With a limit above 8, differential privacy guarantees little to the people in the data.",
}


class DatasetView(ResponseBody):
    """The declared facts of a dataset and the state of its content.

    It contains nothing that was read from rows.
    """

    model_config = ConfigDict(
        json_schema_extra={"examples": [{name: value for name, value in _SHOWN.items() if name != "shared_with"}]}
    )

    id: str
    """Id of the dataset."""
    name: str
    """Name of the dataset."""
    owner: KeyReference
    """The key that declared the dataset."""
    description: str
    """Description by the owner."""
    sensitivity: Literal["private", "public"]
    """`private`: differential privacy applies. `public`: the data is public, and nothing is charged."""
    population: str
    """Name of the population. Datasets about the same people share its account."""
    series: str | None = Field(default=None, exclude_if=lambda name: name is None)
    """Name of the series in which each person counts once; absent without one."""
    columns: list[dict[str, Any]]
    """Declared columns with their types, bounds and categories."""
    privacy_unit: dict[str, Any]
    """The privacy unit that differential privacy protects: a row, or all rows of one person."""
    slots: int
    """Public number of units to which the table is padded."""
    budget: Limit | None
    """Limit on the privacy cost of the dataset's jobs; null for public data."""
    spent: CostOfDataset | None
    """Composed cost of all jobs of the population that opened the data; null for public data."""
    reserved: CostOfDataset | None
    """Cost that open reservations add to `spent`; null for public data."""
    remaining: CostOfDataset | None
    """Cost of the largest single full-batch job of the caller that would be admitted; null for public data."""
    releases_public: bool
    """Whether new releases can be read without an API key."""
    status: Literal["created", "received", "ready", "rejected", "deleted"]
    """State of the dataset.

    `created`: nothing was uploaded. `received`: the first upload is being read. `ready`: jobs can run. `rejected`: no
    upload is usable. `deleted`: the data key is destroyed.
    """
    content: ContentView | None
    """The newest version that the caller may see; null if there is none."""
    created_at: datetime
    """Time of the declaration."""


class DatasetDetail(DatasetView):
    """A dataset as its owner, auditors and administrators see it."""

    model_config = ConfigDict(json_schema_extra={"examples": [_SHOWN_TO_OWNER]})

    shared_with: list[str]
    """Ids of the keys that may use the dataset."""
    rejection: RejectionView | None = Field(default=None, exclude_if=lambda rejection: rejection is None)
    """Why the newest content was rejected; absent if it was not."""
    content_received_at: datetime | None
    """Time at which the newest version was uploaded."""
    content_ended_at: datetime | None
    """Time at which the newest version became ready or was rejected."""
    deleted_at: datetime | None
    """Time of the deletion; null if the dataset is not deleted."""


class DeclarationWarning(ResponseBody):
    """A property of a valid declaration that may be a mistake."""

    code: Literal["reserved_column", "weak_guarantee"]
    """Stable code, for programs.

    `reserved_column`: the column's name has a meaning in releases. `weak_guarantee`: the limit is so high that
    differential privacy guarantees little.
    """
    pointer: str
    """JSON pointer to the member of the declaration."""
    message: str
    """The consequence, and a remedy."""


class DeclaredDataset(DatasetDetail):
    """A dataset whose declaration may contain mistakes."""

    model_config = ConfigDict(json_schema_extra={"examples": [{**_SHOWN_TO_OWNER, "warnings": [_EXAMPLE_WARNING]}]})

    warnings: list[DeclarationWarning]
    """Properties of the declaration that may be mistakes, at least one. Other declarations have no such member."""


class DeletionReceipt(ResponseBody):
    """A signed record of a deletion; ``GET /v1/keys`` publishes the key that verifies it."""

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
    """The signed statement: the keys that were destroyed, the data that is kept, and the expiry of backups."""
    signature: str
    """Ed25519 signature over the RFC 8785 form of `statement`, in base64."""
    key_id: str
    """Id of the ledger key that signed; `GET /v1/keys` publishes it."""
