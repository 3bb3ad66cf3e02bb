"""The high-water mark: what the newest checkpoints said, where a restore of the database cannot reach.

A mark is a checkpoint with the balance of its account, signed by the ledger key. It is put down after the checkpoint is
durable and before anything follows from it. A database that lacks the newest mark's checkpoint is an older one, or
another one: nothing is written to it until an operator has reconciled the two.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import exists, select

from app.db import Database, ReadSession
from app.errors import DependencyUnavailable
from app.hashchain import GENESIS
from app.ledger.entries.balance import Balance
from app.ledger.models import Account, Checkpoint
from app.vault.errors import ObjectMissing
from app.vault.marks import MarkName, Marks, newest, newest_each
from app.vault.signing import Signer

_KIND = "corevault.mark"
BEHIND = (
    "The database is older than its high-water mark, or another one: it was restored, or swapped. Nothing is written "
    "to it until an operator has run 'corevaultd reconcile'."
)
MISSING = (
    "The ledger has checkpoints, and the place of COREVAULT_MARK_URL has no mark. Bring the mark back; if there never "
    "was one, run 'corevaultd reconcile --adopt'."
)


@dataclass(frozen=True, slots=True)
class State:
    """An account as its newest mark has it."""

    name: MarkName
    balance: Balance


class HighWaterMark:
    """The mark as one process sees it.

    ``confirmed`` is whether the database held all that the mark says when that was last looked at.
    """

    def __init__(self, marks: Marks, signer: Signer) -> None:
        self._marks = marks
        self._signer = signer
        self._frozen: set[MarkName] = set()
        self.confirmed = False

    def confirm(self, database: Database) -> None:
        """See to it that ``database`` was found to hold what the mark says; looks if it was not yet.

        Raises:
            DependencyUnavailable: as :meth:`check`.
        """
        if not self.confirmed:
            with database.read() as session:
                self.check(session)

    def check(self, session: ReadSession) -> None:
        """Compare the database with the newest mark.

        Raises:
            DependencyUnavailable: the database is behind the mark, the mark is missing, or cannot be reached.
        """
        self.confirmed = False
        top = newest(self._marks.names())
        if top is None:
            if session.scalar(select(exists().where(Checkpoint.sequence > 0))):
                raise DependencyUnavailable(MISSING)
        elif not contains(session, top):
            raise DependencyUnavailable(BEHIND)
        self.confirmed = True

    def begin(self, account_id: str) -> None:
        """Say that there is going to be a mark, before the first checkpoint is durable.

        Otherwise a crash between the two would look like a mark that was removed, and stop everything.

        Raises:
            DependencyUnavailable: the place cannot be reached.
        """
        if not self._marks.names():
            self._marks.put(MarkName(account_id, 0, GENESIS), b"")

    def advance(self, row: Checkpoint, balance: Mapping[str, Any]) -> None:
        """Put down a checkpoint that is durable.

        Raises:
            DependencyUnavailable: the place cannot be reached; then nothing may follow from the checkpoint.
        """
        name = MarkName(row.account_id, row.sequence, row.checkpoint_hash)
        signed = self._signer.sign({"kind": _KIND, "name": str(name), "balance": balance})
        self._marks.put(name, json.dumps(signed).encode())

    def names(self) -> list[MarkName]:
        """The newest mark of each account."""
        return newest_each(self._marks.names())

    def without_freeze(self, account_ids: Sequence[str]) -> list[str]:
        """Those of the accounts whose newest mark does not say that they are frozen.

        Raises:
            DependencyUnavailable: the place cannot be reached.
        """
        if not account_ids:
            return []
        newest_of = {name.account: name for name in self.names()}
        return [each for each in account_ids if each not in newest_of or not self._says_frozen(newest_of[each])]

    def _says_frozen(self, name: MarkName) -> bool:
        if name not in self._frozen:
            state = self.read(name)
            self._frozen |= {name} if state is not None and state.balance.frozen else set()
        return name in self._frozen

    def read(self, name: MarkName) -> State | None:
        """What a mark says; None if it cannot be believed or read."""
        try:
            document: dict[str, Any] = json.loads(self._marks.read(name))
            statement = document["statement"]
            believed = self._signer.ring.verify(document, ("checkpoint", name.sequence))
            if not believed or (statement["kind"], statement["name"]) != (_KIND, str(name)):
                return None
            return State(name, Balance.from_json(statement["balance"]))
        except (ObjectMissing, ValueError, TypeError, KeyError, IndexError, AttributeError):
            return None


def describe_balance(account: Account) -> dict[str, Any]:
    """The balance as a mark has it: frozen also where the chain does not hold, and so could not be told."""
    try:
        whole = account.stored.whole()
    except (ValueError, TypeError, AttributeError):  # somebody has edited it: the mark cannot be read, and stops all
        whole = {}
    return {**whole, "frozen": account.frozen_at is not None}


def contains(session: ReadSession, name: MarkName) -> bool:
    """Whether the checkpoint that a mark stands for is in the database; that which only begins says nothing yet."""
    if name.sequence == 0:
        return True
    there = exists().where(Checkpoint.sequence == name.sequence, Checkpoint.checkpoint_hash == name.digest)
    return bool(session.scalar(select(there)))
