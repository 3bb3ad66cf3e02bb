"""A charge: what a job would do to the data, and its price in integers."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any

from app.errors import Internal, InvalidRequest, MethodNotAllowedOnPrivateData
from app.ledger.encoding import pack, unpack
from app.privacy.accounting import DISCRETISATION_SHARE, INFINITE, renyi
from app.privacy.discretisation import distance
from app.privacy.events import NonPrivateEvent, PrivacyEvent, UnknownEvent

DISTANCE_BITS = 120
"""Total variation distances are held in units of 2**-120, rounded up."""


@dataclass(frozen=True, slots=True)
class Charge:
    """The events of a job in order, and the shape of the integer answers that carry them out.

    Args:
        events: run-length encoded.
        answer_length: values in each noised answer.
        grid_bits: the answers lie on a grid of ``C / 2**grid_bits``.
    """

    events: tuple[PrivacyEvent, ...]
    answer_length: int
    grid_bits: int


@dataclass(frozen=True, slots=True)
class Pinned:
    """What an entry charges, for ever: one amount per order of the account, of its tranche and of the cap."""

    amounts: tuple[int, ...]
    tranche: int
    tranche_amounts: tuple[int, ...]
    cap_amounts: tuple[int, ...]
    distance: int
    caller_id: str | None = None
    """Whose allocation is charged too, and with what; None where the caller has none."""
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
def amounts(charge: Charge, orders: tuple[float, ...]) -> tuple[int, ...]:
    """The Renyi vector of ``charge`` at ``orders``.

    Raises:
        MethodNotAllowedOnPrivateData: for something without a privacy guarantee.
        Internal: for an event without a price, and for a job that does nothing (never priced at zero).
    """
    if any(isinstance(event, NonPrivateEvent) for event in charge.events):
        raise MethodNotAllowedOnPrivateData
    try:
        vector = renyi(charge.events, orders)
    except UnknownEvent as error:
        raise Internal("A planned event has no price, so nothing can be charged for it.") from error
    if min(vector) <= 0:
        raise Internal("A job on private data always has a price.")
    return vector


def check_priced(vector: Sequence[int]) -> None:
    """Refuse a job that costs more than any order can express.

    Raises:
        InvalidRequest: at the member that sets the noise.
    """
    if min(vector) >= INFINITE:
        raise InvalidRequest.at("/privacy", "the noise is so small that the job has no finite price")


@lru_cache(maxsize=1024)
def distance_units(charge: Charge) -> int:
    """The distance between the discrete noise and the continuous one that is priced, rounded up.

    Raises:
        InvalidRequest: if the noise is too small for the grid to say.
    """
    try:
        value = distance(charge.events, charge.answer_length, charge.grid_bits)
    except UnknownEvent as error:
        raise InvalidRequest.at("/privacy", "the noise is too small for the grid that answers lie on") from error
    units: int = math.ceil(Fraction(value) * 2**DISTANCE_BITS)
    return max(1, units)


def distance_allowance(epsilon: float, delta: float) -> int:
    """The largest total distance that the share of ``delta`` set aside pays for at ``epsilon``, rounded down."""
    share = delta * DISCRETISATION_SHARE * math.exp(-epsilon) / (1.0 + math.exp(-epsilon))
    units: int = math.floor(Fraction(share * (1 - 1e-12)) * 2**DISTANCE_BITS)
    return units
