"""Request and response bodies of what-if questions, and of the verification of a chain."""

from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field

from app.budgets.schemas import AllocationView, CostView, EntryView
from app.http.requests.bodies import Body, ResponseBody

_COST: dict[str, Any] = {"epsilon": 0.61, "delta": 1e-6}
_RISK: dict[str, Any] = {"epsilon": 0.61, "delta": 1e-6, "odds": 1.85, "true_positives": 0.0185, "exact": False}
_OUTLOOK: dict[str, Any] = {
    "limit": {"epsilon": 2.0, "delta": 1e-6},
    "spent": _COST,
    "reserved": {"epsilon": 0.0, "delta": 1e-6},
    "remaining": {"epsilon": 1.87, "delta": 1e-6},
    "more_like_last": 9,
    "allocation": None,
    "risk": {"epsilon": 2.0, "delta": 1e-6, "odds": 7.39, "true_positives": 0.0739, "exact": False},
}
_HASH = "5f" * 32


class JobQuestion(Body):
    """A job with one noised query of the whole table."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"epsilon": 0.5}]})

    epsilon: Annotated[float, Field(gt=0)]
    """Cost of the job alone, at the delta of the account."""


class AllocationQuestion(Body):
    """A new allocation for one key. The allocations of other keys do not change."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"key_id": "key_01jd0000000000000000000000", "epsilon": 0.7}]}
    )

    key_id: Annotated[str, Field(max_length=200)]
    """Id of the key."""
    epsilon: Annotated[float, Field(gt=0)] | None = None
    """The most that the key's jobs may cost together; null ends the allocation."""


class RiskView(ResponseBody):
    """The power of an attacker who has every release.

    The attacker tests whether one unit is in the data.
    """

    model_config = ConfigDict(from_attributes=True)

    epsilon: float
    """Composed cost of the releases."""
    delta: float
    """Delta of that cost."""
    odds: float
    """Highest odds to one that an attacker can reach from even odds, up to delta."""
    true_positives: float
    """Rate of true positives of a test with 1 % false positives."""
    exact: bool
    """Whether some test reaches `true_positives`; otherwise it is an upper bound."""


class JobOutlookView(ResponseBody):
    """The consequence of a job. Nothing is reserved, and no row is read."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "cost": {"epsilon": 0.5, "delta": 1e-6},
                    "affordable": True,
                    "reason": None,
                    "more_like_this": 8,
                    "epsilon_before": 0.61,
                    "epsilon_after": 0.83,
                    "risk_before": _RISK,
                    "risk_after": _RISK | {"epsilon": 0.83, "odds": 2.3, "true_positives": 0.023},
                }
            ]
        }
    )

    cost: CostView
    """Cost of the job alone."""
    affordable: bool
    """Whether the account would admit the job now."""
    reason: Literal["frozen", "limit", "cap", "allocation"] | None
    """Why the account would not admit it, as in a quote; null if it would."""
    more_like_this: int
    """Number of identical jobs that would still be admitted after this one."""
    epsilon_before: float
    """Composed cost of the account now, including reservations."""
    epsilon_after: float
    """Composed cost of the account after the job."""
    risk_before: RiskView
    """Bound on the risk of one unit now."""
    risk_after: RiskView
    """Bound on the risk of one unit after the job."""


class OutlookView(ResponseBody):
    """An account before or after a change."""

    limit: CostView
    """The most that all jobs on the dataset may cost together."""
    spent: CostView
    """Composed cost of all jobs that opened the data."""
    reserved: CostView
    """Cost that open reservations add to `spent`."""
    remaining: CostView
    """Cost of the largest single full-batch job that fits; with an allocation, that fits into it too."""
    more_like_last: int | None
    """Number of further jobs like the dataset's last one that fit; null if it had no job."""
    allocation: AllocationView | None
    """Allocation of the key in question; null if there is none."""
    risk: RiskView
    """Bound on the risk of one unit if the whole of the highest limit so far is spent."""


class ComparisonView(ResponseBody):
    """The account now, and after the change in question. Nothing is changed."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"before": _OUTLOOK, "after": _OUTLOOK}]})

    before: OutlookView
    """The account now."""
    after: OutlookView
    """The account after the change."""


class VerificationView(ResponseBody):
    """The result of a verification."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"verifies": True, "newest": None}]})

    verifies: bool
    """Whether the entries form one hash chain and add up to the balance of the account."""
    newest: EntryView | None
    """The newest entry; null if there is none. Note its hash: every later valid chain contains it."""


class ChainKeyView(ResponseBody):
    """A public key that signs entries."""

    model_config = ConfigDict(from_attributes=True)

    key_id: str
    """Id of the key, from its hash."""
    public_key: str
    """Ed25519 public key, in base64."""
    until: int | None
    """A retired key is valid up to this checkpoint; null for the present key."""


class ChainView(ResponseBody):
    """A part of a hash chain.

    It has every member that a hash or a signature covers.
    """

    model_config = ConfigDict(
        from_attributes=True,
        json_schema_extra={
            "examples": [
                {
                    "account_id": "acc_01jd0000000000000000000000",
                    "keys": [{"key_id": "ed25519:5f5f5f5f", "public_key": "qg==", "until": None}],
                    "entries": [{"sequence": 1, "kind": "account_opened", "entry_hash": _HASH}],
                    "checkpoints": [{"number": 1, "account_sequence": 1, "checkpoint_hash": _HASH}],
                    "head": {"sequence": 1, "head": _HASH},
                    "after": None,
                }
            ]
        },
    )

    account_id: str
    """Id of the account. Every hash covers it."""
    keys: list[ChainKeyView]
    """Public keys that may have signed."""
    entries: list[dict[str, Any]]
    """Entries in order, each with its hash and the members that the hash covers."""
    checkpoints: list[dict[str, Any]]
    """Signed checkpoints of these entries; in the last part also all later ones of the account."""
    head: dict[str, Any] | None
    """Signed snapshot of the newest state, with the newest entry as `end`; in the last part only."""
    after: int | None
    """Sequence number of the last entry of this part, after which the next part starts; null in the last part."""
