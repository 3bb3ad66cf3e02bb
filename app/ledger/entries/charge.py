"""A charge: the privacy events of a job, and their price in integers."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from app.errors import Internal, InvalidRequest, MethodNotAllowedOnPrivateData
from app.ledger.entries.numbers import pack, unpack
from app.privacy.accounting import INFINITE, compose_renyi
from app.privacy.events import NonPrivateEvent, PrivacyEvent, UnknownEvent


@dataclass(frozen=True, slots=True)
class Charge:
    """The events of a job in order, run-length encoded."""

    events: tuple[PrivacyEvent, ...]


@dataclass(frozen=True, slots=True)
class Pinned:
    """The amounts that an entry charges, one for each order of a filter.

    The account, its tranche, the cap and the caller's allocation have separate filters.
    """

    amounts: tuple[int, ...]
    tranche: int
    tranche_amounts: tuple[int, ...]
    cap_amounts: tuple[int, ...]
    distance: int = 0
    """The part of delta that older versions charged for rounded noise, in units of 2**-120; now zero."""
    caller_id: str | None = None
    """The caller whose allocation is charged too; None if the caller has no allocation."""
    caller_amounts: tuple[int, ...] = ()

    def to_json(self) -> dict[str, Any]:
        allocation = {"caller": [self.caller_id, pack(self.caller_amounts)]} if self.caller_id is not None else {}
        return allocation | {
            "amounts": pack(self.amounts),
            "tranche": self.tranche,
            "tranche_amounts": pack(self.tranche_amounts),
            "cap_amounts": pack(self.cap_amounts),
            "distance": pack((self.distance,)),
        }

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> "Pinned":
        caller_id, caller_amounts = document.get("caller", (None, ""))
        return cls(
            caller_id=caller_id,
            caller_amounts=unpack(caller_amounts),
            amounts=unpack(document["amounts"]),
            tranche=document["tranche"],
            tranche_amounts=unpack(document["tranche_amounts"]),
            cap_amounts=unpack(document["cap_amounts"]),
            distance=unpack(document["distance"])[0],
        )


@lru_cache(maxsize=4096)
def compute_amounts(charge: Charge, orders: tuple[float, ...]) -> tuple[int, ...]:
    """Compute the amounts of ``charge`` at ``orders``: its Renyi divergences as integers.

    Raises:
        MethodNotAllowedOnPrivateData: an event has no privacy guarantee.
        Internal: an event has no price, or the job costs nothing.
    """
    if any(isinstance(event, NonPrivateEvent) for event in charge.events):
        raise MethodNotAllowedOnPrivateData
    try:
        vector = compose_renyi(charge.events, orders)
    except UnknownEvent as error:
        raise Internal("A planned event has no price, so nothing can be charged for it.") from error
    if min(vector) <= 0:
        raise Internal("A job on private data always has a price.")
    return vector


def check_priced(vector: Sequence[int]) -> None:
    """Refuse a job whose cost is infinite at every order.

    Raises:
        InvalidRequest: at the member that sets the noise.
    """
    if min(vector) >= INFINITE:
        raise InvalidRequest.at("/privacy", "The noise is so small that the job has no finite price; use more noise.")
