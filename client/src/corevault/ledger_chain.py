"""Verification of an account's hash chain and its signatures on this machine.

It shares no code with the server, so it is a second derivation. The encoding is SHA-256 and Ed25519 of canonical JSON
(RFC 8785). Checkpoints and the newest signed state are signed, and so are reservations. Costs are not added up.
"""

import base64
import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import rfc8785
from nacl.exceptions import BadSignatureError
from nacl.signing import VerifyKey

from corevault._arguments import require_text
from corevault._show import write_call
from corevault.errors import VerificationError
from corevault.verification import key_id_of

_GENESIS: Final = "0" * 64
_CONTENT: Final = (
    *("account_id", "at", "kind", "dataset_id", "job_id", "body", "epsilon_after", "sequence", "previous_hash"),
)
_CHECKPOINT: Final = (
    *("at", "account_id", "account_sequence", "account_head", "balance_hash", "sequence", "previous_hash"),
)
_HEAD: Final = ("account_id", "sequence", "head", "balance_hash", "checkpoint")
_RESERVATION: Final = ("account_id", "sequence", "dataset_id", "job_id")


@dataclass(frozen=True, repr=False)
class VerifiedLedger:
    """A chain of an account that verifies. Note ``newest_hash``: every later chain of this account contains it.

    ``entries`` and ``signatures`` are numbers. ``unsigned_end`` is the number of reservations after the newest signed
    state; their signatures cover job and cost, and not the time. ``key_ids`` have signed.

    >>> ledger = client.datasets.verify_ledger("clinic")
    >>> ledger.entries > 1, ledger.find(ledger.newest_hash) == ledger.entries
    (True, True)
    """

    account_id: str
    entries: int
    newest_hash: str
    signatures: int
    unsigned_end: int
    key_ids: tuple[str, ...]
    _places: Mapping[str, int] = field(compare=False)

    def find(self, entry_hash: str) -> int | None:
        """The number of the entry with this hash; None if the chain does not contain it.

        >>> client.datasets.verify_ledger("clinic").find("0" * 64) is None
        True
        """
        require_text(entry_hash, "entry_hash")
        return self._places.get(entry_hash.strip().lower())

    def facts(self) -> dict[str, Any]:
        """The members that its text shows.

        >>> sorted(client.datasets.verify_ledger("clinic").facts())[:2]
        ['account_id', 'entries']
        """
        names = ("account_id", "entries", "newest_hash", "signatures", "unsigned_end", "key_ids")
        return {name: getattr(self, name) for name in names}

    def __repr__(self) -> str:
        return write_call(type(self).__name__, self.facts())


@dataclass(frozen=True)
class _Key:
    """A public key. ``until`` is the last checkpoint that it may sign; None for a present key."""

    verify: VerifyKey
    until: int | None


class LedgerCheck:
    """The state of one verification. Give it all parts of the chain in order, and then end it.

    ``pinned`` are the public keys that count; None: the keys that the server states.
    """

    def __init__(self, pinned: Sequence[str] | None) -> None:
        self._pinned = pinned
        self._keys: dict[str, _Key] = {}
        self._account = ""
        self._hashes: list[str] = []
        self._newest = self._covered = self._signatures = 0
        self._signers: set[str] = set()
        self._tail: list[tuple[int, str, bool]] = []  # the entries after the newest signed state
        self._is_complete = False

    def add(self, part: Mapping[str, Any]) -> int | None:
        """Verifies one part of the chain; returns the number after which the next one starts.

        Raises:
            VerificationError: the part does not verify, or does not follow the parts before it.
        """
        try:
            self._add(part)
            after: int | None = part["after"]
        except (KeyError, TypeError, ValueError, AttributeError, rfc8785.CanonicalizationError) as error:
            raise VerificationError(f"The chain is malformed after entry {len(self._hashes)}.") from error
        _require(after is None or after == len(self._hashes) > 0, "The end of a part is not where the part states it.")
        return after

    def end(self) -> VerifiedLedger:
        """The verified chain. Raises ``VerificationError`` if its end is missing."""
        _require(self._is_complete, "The end of the chain is missing.")
        places = {each: number for number, each in enumerate(self._hashes, start=1)}
        return VerifiedLedger(
            account_id=self._account,
            entries=len(self._hashes),
            newest_hash=self._hashes[-1],
            signatures=self._signatures,
            unsigned_end=len(self._tail),
            key_ids=tuple(sorted(self._signers)),
            _places=places,
        )

    def _add(self, part: Mapping[str, Any]) -> None:
        if not self._account:
            self._account, self._keys = str(part["account_id"]), _read_keys(part["keys"], self._pinned)
        _require(part["account_id"] == self._account, "A part belongs to another account.")
        marks = list(part["checkpoints"])
        for entry in part["entries"]:
            self._take(entry)
            while marks and marks[0]["account_sequence"] == entry["sequence"]:
                self._mark(marks.pop(0))
        _require(not marks, "A checkpoint signs an entry that is missing.")
        if part["head"] is not None:
            self._end(part["head"])

    def _take(self, entry: Mapping[str, Any]) -> None:
        name = f"Entry {len(self._hashes) + 1}"
        previous = self._hashes[-1] if self._hashes else _GENESIS
        _require(entry["sequence"] == len(self._hashes) + 1, f"{name} is missing, or not in its place.")
        _require(entry["previous_hash"] == previous, f"{name} does not follow the entry before it.")
        _require(entry["account_id"] == self._account, f"{name} belongs to another account.")
        _require(_digest(_pick(entry, _CONTENT)) == entry["entry_hash"], f"{name} was altered.")
        self._tail.append((entry["sequence"], entry["kind"], self._verify_reservation(entry, name)))
        self._hashes.append(entry["entry_hash"])

    def _verify_reservation(self, entry: Mapping[str, Any], name: str) -> bool:
        body = dict(entry["body"] or {})
        if entry["kind"] != "reserved" or "signature" not in body:
            return False
        signature, key_id = body.pop("signature"), body.pop("key_id")
        statement = {"purpose": "reservation", **_pick(entry, _RESERVATION), "body_hash": _digest(body)}
        self._verify(statement, signature, key_id, self._newest, name)
        return True

    def _mark(self, mark: Mapping[str, Any]) -> None:
        name = f"Checkpoint {mark['sequence']}"
        _require(mark["sequence"] > self._newest, f"{name} is not in its place.")
        _require(mark["account_id"] == self._account, f"{name} belongs to another account.")
        _require(mark["account_head"] == self._hashes[mark["account_sequence"] - 1], f"{name} signs another entry.")
        _require(_digest(_pick(mark, _CHECKPOINT)) == mark["checkpoint_hash"], f"{name} was altered.")
        statement = _pick(mark, ("checkpoint_hash", "sequence"))
        self._verify(statement, mark["signature"], mark["key_id"], mark["sequence"], name)
        self._newest = mark["sequence"]
        self._cover(mark["account_sequence"])

    def _end(self, head: Mapping[str, Any]) -> None:
        is_strict = bool(head.get("strict"))
        end = {"sequence": len(self._hashes), "entry_hash": self._hashes[-1]}
        _require(head["account_id"] == self._account, "The signed state belongs to another account.")
        _require(head["end"] == end, "Entries at the end of the chain are missing.")
        _require(head["checkpoint"] == self._newest, "The newest checkpoint is missing.")
        _require(
            0 < head["sequence"] <= len(self._hashes) and head["head"] == self._hashes[head["sequence"] - 1],
            "The signed state is that of another entry.",
        )
        statement = {**_pick(head, _HEAD), **({"strict": True} if is_strict else {})}
        self._verify(statement, head["signature"], head["key_id"], head["checkpoint"], "The signed state")
        self._cover(head["sequence"])
        for sequence, kind, is_signed in self._tail:
            _require(is_signed or kind == "frozen" or not is_strict, f"Entry {sequence} has no signature.")
        self._is_complete = True

    def _cover(self, sequence: int) -> None:
        self._covered = max(self._covered, sequence)
        self._tail = [each for each in self._tail if each[0] > self._covered]

    def _verify(self, statement: Mapping[str, Any], signature: str, key_id: str, place: int, name: str) -> None:
        key = self._keys.get(key_id)
        if key is None:
            source = "the server does not state" if self._pinned is None else "is not pinned"
            raise VerificationError(f"{name} is signed by a key that {source}.")
        _require(key.until is None or place <= key.until, f"{name} is signed by a key that was retired before.")
        try:
            key.verify.verify(rfc8785.dumps(dict(statement)), base64.b64decode(signature, validate=True))
        except (BadSignatureError, ValueError) as error:
            raise VerificationError(f"The signature of {name[0].lower()}{name[1:]} is not valid.") from error
        self._signatures += 1
        self._signers.add(key_id)


def _read_keys(described: Sequence[Mapping[str, Any]], pinned: Sequence[str] | None) -> dict[str, _Key]:
    keys = {}
    for each in described:
        text = each["public_key"]
        _require(key_id_of(text) == each["key_id"], "A key has another id than stated.")
        if pinned is None or text in pinned:
            keys[each["key_id"]] = _Key(VerifyKey(base64.b64decode(text)), each["until"])
    return keys


def _pick(source: Mapping[str, Any], names: Sequence[str]) -> dict[str, Any]:
    return {name: source[name] for name in names}


def _digest(document: Mapping[str, Any]) -> str:
    return hashlib.sha256(rfc8785.dumps(dict(document))).hexdigest()


def _require(holds: bool, message: str) -> None:
    if not holds:
        raise VerificationError(message)
