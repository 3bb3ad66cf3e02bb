"""Response bodies of the list of populations."""

from datetime import datetime
from typing import Any

from pydantic import ConfigDict

from app.auth.schemas import KeyReference
from app.budgets.schemas import CostView
from app.http.requests.bodies import ResponseBody

_EXAMPLE: dict[str, Any] = {
    "population": "census-1994",
    "owner": {"id": "key_01jd0000000000000000000001", "name": "Statistics office"},
    "datasets": [
        {
            "id": "ds_01jd0000000000000000000000",
            "name": "adult",
            "slots": 33000,
            "limit": {"epsilon": 2.0, "delta": 1e-6},
            "deleted": False,
        }
    ],
    "dataset_count": 1,
    "unit": {"kind": "row"},
    "slots": 33000,
    "limit": {"epsilon": 2.0, "delta": 1e-6},
    "spent": {"epsilon": 0.61, "delta": 1e-6},
    "reserved": {"epsilon": 0.0, "delta": 1e-6},
    "remaining": {"epsilon": 1.87, "delta": 1e-6},
    "used_share": 0.21,
    "more_like_last": 9,
    "lasts_seconds": 7776000.0,
    "frozen_at": None,
    "deleted": False,
}


class PopulationDataset(ResponseBody):
    """A dataset of a population."""

    id: str
    """Id of the dataset."""
    name: str
    """Name of the dataset."""
    slots: int
    """Public number of units to which its table is padded."""
    limit: CostView | None
    """The most that all jobs on this dataset may cost together; null for public data."""
    deleted: bool
    """Whether its data is destroyed."""


class PopulationView(ResponseBody):
    """The datasets about the same people, and the account that they share.

    It contains only datasets that the caller may see. Each public dataset is a separate item, without an account.
    """

    model_config = ConfigDict(json_schema_extra={"examples": [_EXAMPLE]})

    population: str
    """Name of the population; for public data, the id of the dataset."""
    owner: KeyReference
    """The key that declared the datasets."""
    datasets: list[PopulationDataset]
    """The newest of its datasets, at most 20."""
    dataset_count: int
    """Number of its datasets."""
    unit: dict[str, Any]
    """The privacy unit that differential privacy protects: a row, or all rows of one person."""
    slots: int
    """Largest number of slots of its datasets."""
    limit: CostView | None
    """The highest limit of its datasets; null for public data, as the other costs."""
    spent: CostView | None
    """Composed cost of all jobs of the account that opened the data."""
    reserved: CostView | None
    """Cost that open reservations add to `spent`."""
    remaining: CostView | None
    """Cost of the largest single full-batch job of the caller that one of the datasets would admit."""
    used_share: float | None
    """Share of the account's limit that is used or reserved, from 0 to 1; null for public data."""
    more_like_last: int | None
    """Further jobs of the caller like the last one on these datasets; null if there was none."""
    lasts_seconds: float | None
    """Seconds until the account is used up, at its pace since its first job; null if there is no pace yet."""
    frozen_at: datetime | None
    """Time of the freeze, if the account is frozen: then no job runs. Null otherwise."""
    deleted: bool
    """Whether all of these datasets are deleted."""
