"""Bodies of the datasets' endpoints."""

from datetime import datetime
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from app.datasets.columns import MAX_COLUMNS, ColumnBody, ColumnName, Declared

MAX_SHARES = 1000
KeyId = Annotated[str, Field(pattern=r"^key_[0-9a-z]{1,64}$")]
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


class RowUnit(Declared):
    """One row is one unit."""

    kind: Literal["row"]


class ColumnUnit(Declared):
    """All rows (at most ``max_rows``) with the same value of ``column`` are one unit."""

    kind: Literal["column"]
    column: ColumnName
    max_rows: Annotated[int, Field(ge=1)]


class BudgetBody(Declared):
    """A limit. Without ``delta``: 1e-6, or 1/(10·slots) where that is smaller."""

    epsilon: float
    delta: float | None = None


class DatasetBody(Declared):
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


class DatasetPatch(Declared):
    """What an owner may change; absent members stay as they are."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"shared_with": [], "releases_public": False}]})

    description: Description = ""
    shared_with: Shares = []
    releases_public: bool = True


class Limit(BaseModel):
    epsilon: float
    delta: float


class ContentView(BaseModel):
    """A content version; analysts see the last ready one only."""

    version: int
    status: Literal["received", "ready", "rejected"]
    rejection: str | None


class DatasetView(BaseModel):
    """Declared facts and where the content stands; never anything that was read from rows."""

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

    shared_with: list[str]
    content_received_at: datetime | None
    content_ended_at: datetime | None
    deleted_at: datetime | None
