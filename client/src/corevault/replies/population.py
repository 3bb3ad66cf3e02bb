"""Replies about populations: datasets about the same people, and the account that they share."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, ClassVar

from corevault.replies._decode import Reply
from corevault.replies.dataset import Cost
from corevault.replies.key import KeyName


@dataclass(frozen=True, kw_only=True, repr=False)
class PopulationDataset(Reply):
    """A dataset of a population. ``limit`` is the most that all jobs on it may cost; None for public data.

    >>> [each.slots for account in client.datasets.populations() for each in account.datasets if each.name == "clinic"]
    [2000]
    """

    id: str
    name: str
    slots: int
    limit: Cost | None = None
    deleted: bool = False

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True, kw_only=True, repr=False)
class Population(Reply):
    """The datasets about the same people that the key may see, and their account; public data has none.

    ``datasets`` has the newest, at most 20 of ``dataset_count``. ``more_like_last`` counts further jobs like the last
    one. ``lasts_seconds`` is the time until the account is used up, at its pace since its first job.

    >>> "clinic" in {each.name for account in client.datasets.populations() for each in account.datasets}
    True
    """

    SHOWN: ClassVar[tuple[str, ...]] = ("names", "slots", "limit", "spent", "more_like_last")

    population: str
    owner: KeyName | None = None
    datasets: tuple[PopulationDataset, ...] = ()
    dataset_count: int
    unit: Mapping[str, Any] | None = None
    slots: int
    limit: Cost | None = None
    spent: Cost | None = None
    reserved: Cost | None = None
    remaining: Cost | None = None
    used_share: float | None = None
    more_like_last: int | None = None
    lasts_seconds: float | None = None
    frozen_at: datetime | None = None
    deleted: bool = False

    @property
    def names(self) -> str:
        """The names of ``datasets``, for texts and tables.

        >>> "clinic" in " ".join(each.names for each in client.datasets.populations())
        True
        """
        listed = ", ".join(each.name for each in self.datasets)
        return listed if len(self.datasets) == self.dataset_count else f"{listed}, …"
