"""A balance is the sum of an account's entries. Pure: each append, check and audit uses the same fold."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from types import MappingProxyType
from typing import Any

from app.hashchain.encoding import Written, digest_form, write
from app.ledger.entries.balance_columns import BalanceColumns
from app.ledger.entries.charge import Pinned
from app.ledger.entries.meter import Meter, Pot
from app.ledger.entries.numbers import unpack

OPENED, RESERVED, SETTLED, VOIDED = "opened", "reserved", "settled", "voided"
ACCOUNT_OPENED, LIMIT_CHANGED = "account_opened", "limit_changed"
FROZEN, UNFROZEN = "frozen", "unfrozen"
CONTENT_REPLACED, DATASET_DELETED = "content_replaced", "dataset_deleted"
PEOPLE_REGISTERED = "people_registered"
STATES = (RESERVED, OPENED, SETTLED, VOIDED)
KINDS = (
    *(ACCOUNT_OPENED, RESERVED, OPENED, SETTLED, VOIDED, LIMIT_CHANGED),
    *(CONTENT_REPLACED, DATASET_DELETED, FROZEN, UNFROZEN, PEOPLE_REGISTERED),
)
NO_DISTANCE = Meter((0,), (0,), (0,))
_MOVES = {RESERVED: (0, 1), OPENED: (1, -1), VOIDED: (0, -1)}


@dataclass(frozen=True, slots=True)
class Registration:
    """The register of one content: its series, its place in the order of receipt, and its object's name."""

    series: str
    place: int
    register: str

    def to_json(self) -> dict[str, Any]:
        return {"series": self.series, "place": self.place, "register": self.register}


@dataclass(frozen=True, slots=True)
class Share:
    """One dataset's part in the account: slots, allocations, and a cap unless it opened the account."""

    slots: int
    cap: Pot | None
    allocations: Mapping[str, Pot] = field(default_factory=lambda: MappingProxyType({}))
    facts: str | None = None
    """Digest of the declared facts; None if an older version declared the dataset and nothing was reserved since."""
    registrations: tuple[Registration, ...] = ()
    """Registers of the dataset's contents, if it is in a series."""

    def to_json(self) -> dict[str, Any]:
        document: dict[str, Any] = {"slots": self.slots, "cap": self.cap.to_json() if self.cap else None}
        if self.facts is not None:
            document["facts"] = self.facts
        if self.allocations:
            document["allocations"] = {name: pot.to_json() for name, pot in self.allocations.items()}
        if self.registrations:
            document["registrations"] = [each.to_json() for each in self.registrations]
        return document


@dataclass(frozen=True, slots=True)
class LiveJob:
    """A reservation that has not ended: its state, and its entry's sequence number and body hash."""

    state: str
    sequence: int
    body_hash: str


@dataclass(frozen=True, slots=True)
class Balance:
    """Limits, the charges against them, and the reservations that have not ended."""

    owner_id: str
    population: str
    relation: str
    unit: Mapping[str, Any]
    total: Pot
    tranches: tuple[Pot, ...]
    datasets: Mapping[str, Share]
    live: Mapping[str, LiveJob] = field(default_factory=lambda: MappingProxyType({}))
    settled: int = 0
    frozen: bool = False
    distance: Meter = NO_DISTANCE
    """The part of delta that older versions charged for the rounding of noise. Stored and replayed, never compared."""

    @property
    def guaranteed_epsilon(self) -> float:
        """The sum of all tranches, which bounds all releases together."""
        return sum(tranche.epsilon for tranche in self.tranches)

    def limit(self, dataset_id: str) -> float:
        """The dataset's limit: the account's, or its cap where that is lower."""
        cap = self.datasets[dataset_id].cap
        return min(self.total.epsilon, cap.epsilon) if cap is not None else self.total.epsilon

    def holds(self, dataset_id: str) -> bool:
        """Whether all limits of the dataset's charges are respected."""
        cap = self.datasets[dataset_id].cap
        shared = self.datasets[dataset_id].allocations.values()
        pots = (self.total, *self.tranches, *shared) if cap is None else (self.total, *self.tranches, *shared, cap)
        return all(pot.meter.holds for pot in pots)

    def to_json(self) -> dict[str, Any]:
        """The complete document, for signed snapshots."""
        live = {name: [job.state, job.sequence, job.body_hash] for name, job in self.live.items()}
        return self._amounts() | {"live": live}

    def to_columns(self) -> BalanceColumns:
        """The columns of the account's row. They count live reservations and do not list them."""
        return BalanceColumns.of(self._amounts() | {"unended": len(self.live)})

    def _amounts(self) -> dict[str, Any]:
        return {
            "owner_id": self.owner_id,
            "population": self.population,
            "relation": self.relation,
            "unit": dict(self.unit),
            "total": self.total.to_json(),
            "tranches": [tranche.to_json() for tranche in self.tranches],
            "distance": self.distance.to_json(),
            "datasets": {name: share.to_json() for name, share in self.datasets.items()},
            "settled": self.settled,
            "frozen": self.frozen,
        }

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> "Balance":
        """Read either form; the cached one lists no reservations."""
        return cls(
            owner_id=document["owner_id"],
            population=document["population"],
            relation=document["relation"],
            unit=document["unit"],
            total=Pot.from_json(document["total"]),
            tranches=tuple(map(Pot.from_json, document["tranches"])),
            datasets={name: _share(share) for name, share in document["datasets"].items()},
            live={name: LiveJob(*job) for name, job in document.get("live", {}).items()},
            settled=document["settled"],
            frozen=document["frozen"],
            distance=Meter.from_json(document["distance"]),
        )


@dataclass(frozen=True)
class LedgerEvent:
    """The content of an entry, without its hashes."""

    sequence: int
    kind: str
    dataset_id: str
    job_id: str | None
    body: Mapping[str, Any]

    @cached_property
    def text(self) -> Written:
        """The body's canonical form; two hashes use it."""
        return write(dict(self.body))


def apply(balance: Balance | None, event: LedgerEvent) -> Balance:
    """The balance after ``event``; None before the first one.

    Raises:
        ValueError: the event is impossible for this balance.
    """
    kind, body = event.kind, event.body
    if balance is None:
        if kind != ACCOUNT_OPENED:
            raise ValueError("a chain starts with its account")
        return _first(body)
    if kind in _MOVES or kind == SETTLED:
        return _job(balance, event)
    if kind == ACCOUNT_OPENED:
        return _with_share(balance, event.dataset_id, _share(body["share"]))
    if kind in {LIMIT_CHANGED, PEOPLE_REGISTERED}:
        return _limit(balance, event) if kind == LIMIT_CHANGED else _register(balance, event)
    if kind in {FROZEN, UNFROZEN}:
        return _freeze(balance, frozen=kind == FROZEN)
    if kind in {CONTENT_REPLACED, DATASET_DELETED}:
        return balance
    raise ValueError("an unknown kind of entry")


def _freeze(balance: Balance, *, frozen: bool) -> Balance:
    if not (frozen or balance.frozen):
        raise ValueError("only a freeze can be ended")
    return replace(balance, frozen=frozen)


def _job(balance: Balance, event: LedgerEvent) -> Balance:
    job_id, kind = event.job_id, event.kind
    before = balance.live.get(job_id) if job_id else None
    expected = {RESERVED: None, OPENED: RESERVED, VOIDED: RESERVED, SETTLED: OPENED}[kind]
    if not job_id or (before.state if before else None) != expected:
        raise ValueError("a job is reserved, then opened, then settled; or voided before it is opened")
    live = dict(balance.live)
    live.pop(job_id, None)
    if kind == SETTLED:
        return replace(balance, live=live, settled=balance.settled + 1)
    if kind == RESERVED:
        live[job_id] = LiveJob(RESERVED, event.sequence, digest_form(event.text.encode()))
    elif kind == OPENED and before:
        live[job_id] = replace(before, state=OPENED)
    return _move(replace(balance, live=live), event)


def _move(balance: Balance, event: LedgerEvent) -> Balance:
    pinned = Pinned.from_json(event.body["charge"])
    spent, reserved = _MOVES[event.kind]
    tranches = list(balance.tranches)
    tranches[pinned.tranche] = tranches[pinned.tranche].move(pinned.tranche_amounts, spent=spent, reserved=reserved)
    after = replace(
        balance,
        total=balance.total.move(pinned.amounts, spent=spent, reserved=reserved),
        tranches=tuple(tranches),
        distance=balance.distance.move((pinned.distance,), spent=spent, reserved=reserved),
    )
    share = balance.datasets[event.dataset_id]
    share = replace(share, facts=share.facts or event.body.get("facts"))
    if share.cap is not None:
        share = replace(share, cap=share.cap.move(pinned.cap_amounts, spent=spent, reserved=reserved))
    if pinned.caller_id is not None:
        pot = share.allocations[pinned.caller_id].move(pinned.caller_amounts, spent=spent, reserved=reserved)
        share = replace(share, allocations={**share.allocations, pinned.caller_id: pot})
    return _with_share(after, event.dataset_id, share)


def _first(body: Mapping[str, Any]) -> Balance:
    balance = Balance.from_json(body["balance"])
    pots = (balance.total, *balance.tranches)
    if balance.live or balance.settled or balance.frozen or not all(pot.untouched for pot in pots):
        raise ValueError("an account opens with nothing spent")
    return balance


def _limit(balance: Balance, event: LedgerEvent) -> Balance:
    body = event.body
    share = balance.datasets[event.dataset_id]
    if "allocations" in body:
        allocations = _reallocate(share.allocations, body["allocations"])
        return _with_share(balance, event.dataset_id, replace(share, allocations=allocations))
    if "cap" in body:
        return _with_share(balance, event.dataset_id, replace(share, cap=_recap(share.cap, body["cap"])))
    tranches = (*balance.tranches, Pot.from_json(body["tranche"])) if body["tranche"] else balance.tranches
    total = balance.total.rebound(body["epsilon"], body["delta"], unpack(body["bounds"]))
    distance = replace(balance.distance, bounds=unpack(body["distance"]))
    return replace(balance, total=total, tranches=tranches, distance=distance)


def _reallocate(before: Mapping[str, Pot], documents: Mapping[str, Any]) -> dict[str, Pot]:
    if any(not pot.untouched for caller_id, pot in before.items() if caller_id not in documents):
        raise ValueError("an allocation that is in use stays")
    return {
        caller_id: _recap(before.get(caller_id) or Pot.from_json(document), document)
        for caller_id, document in documents.items()
    }


def _recap(before: Pot | None, document: Mapping[str, Any]) -> Pot:
    after = Pot.from_json(document)
    if before is None or not after.untouched:
        raise ValueError("only a cap can be changed, and only its limit")
    if before.orders == after.orders:
        return before.rebound(after.epsilon, after.delta, after.meter.bounds)
    if not before.untouched:
        raise ValueError("a cap that is in use keeps its orders")
    return after


def _register(balance: Balance, event: LedgerEvent) -> Balance:
    share, added = balance.datasets[event.dataset_id], _registration(event.body)
    if any(each.series != added.series or each.register == added.register for each in share.registrations):
        raise ValueError("a dataset has one series, and each content a separate register")
    return _with_share(balance, event.dataset_id, replace(share, registrations=(*share.registrations, added)))


def _with_share(balance: Balance, dataset_id: str, share: Share) -> Balance:
    return replace(balance, datasets={**balance.datasets, dataset_id: share})


def _share(document: Mapping[str, Any]) -> Share:
    cap = Pot.from_json(document["cap"]) if document["cap"] else None
    allocations = {name: Pot.from_json(pot) for name, pot in document.get("allocations", {}).items()}
    registrations = tuple(map(_registration, document.get("registrations", ())))
    return Share(document["slots"], cap, allocations, document.get("facts"), registrations)


def _registration(document: Mapping[str, Any]) -> Registration:
    return Registration(document["series"], document["place"], document["register"])
