"""The high-water mark: the newest checkpoints, stored outside the database's backups.

A mark is a checkpoint with the balance of its account, signed by the ledger key. It is written after the checkpoint is
durable, and before the step that the checkpoint protects. If a database does not contain the checkpoint of the newest
mark, it is an older state, or another database. The service does not write to it until an operator has run
``corevaultd reconcile``.
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
from app.vault.marks import MarkName, Marks, find_newest, find_newest_each
from app.vault.signing import Signer

_KIND = "corevault.mark"
BEHIND = (
    "The database is behind its high-water mark: it was restored from a backup, or is another database. The service "
    "does not write to it until an operator has run 'corevaultd reconcile'."
)
MISSING = (
    "The ledger has checkpoints, but there is no mark at COREVAULT_MARK_URL. Restore the mark. If there never was one, "
    "run 'corevaultd reconcile --adopt'."
)


@dataclass(frozen=True, slots=True)
class State:
    """An account's state according to its newest mark."""

    name: MarkName
    balance: Balance


class HighWaterMark:
    """One process's view of the mark.

    ``confirmed``: whether the database contained the mark's checkpoint at the last check.
    """

    def __init__(self, marks: Marks, signer: Signer) -> None:
        self._marks = marks
        self._signer = signer
        self._frozen: set[MarkName] = set()
        self.confirmed = False

    def confirm(self, database: Database) -> None:
        """Check ``database`` against the mark, unless the last check succeeded.

        Raises:
            DependencyUnavailable: as :meth:`check`.
        """
        if not self.confirmed:
            with database.read() as session:
                self.check(session)

    def check(self, session: ReadSession) -> None:
        """Compare the database with the newest mark.

        Raises:
            DependencyUnavailable: the database is behind the mark, or the mark is missing or cannot be reached.
        """
        self.confirmed = False
        top = find_newest(self._marks.names())
        if top is None:
            if session.scalar(select(exists().where(Checkpoint.sequence > 0))):
                raise DependencyUnavailable(MISSING)
        elif not has_checkpoint(session, top):
            raise DependencyUnavailable(BEHIND)
        self.confirmed = True

    def begin(self, account_id: str) -> None:
        """Store an empty first mark, before the first checkpoint is durable.

        Without it, a crash between the first checkpoint and its mark would look like a removed mark, which blocks all
        writes.

        Raises:
            DependencyUnavailable: the storage of marks cannot be reached.
        """
        if not self._marks.names():
            self._marks.put(MarkName(account_id, 0, GENESIS), b"")

    def advance(self, row: Checkpoint, balance: Mapping[str, Any]) -> None:
        """Write the mark of a durable checkpoint.

        Raises:
            DependencyUnavailable: the storage of marks cannot be reached. The caller must not take the step that the
                checkpoint protects.
        """
        name = MarkName(row.account_id, row.sequence, row.checkpoint_hash)
        signed = self._signer.sign({"kind": _KIND, "name": str(name), "balance": balance})
        self._marks.put(name, json.dumps(signed).encode())

    def names(self) -> list[MarkName]:
        """The newest mark of each account."""
        return find_newest_each(self._marks.names())

    def without_freeze(self, account_ids: Sequence[str]) -> list[str]:
        """The accounts whose newest mark does not record a freeze.

        Raises:
            DependencyUnavailable: the storage of marks cannot be reached.
        """
        if not account_ids:
            return []
        newest_of = {name.account: name for name in self.names()}
        return [each for each in account_ids if each not in newest_of or not self._records_freeze(newest_of[each])]

    def _records_freeze(self, name: MarkName) -> bool:
        if name not in self._frozen:
            state = self.read(name)
            self._frozen |= {name} if state is not None and state.balance.frozen else set()
        return name in self._frozen

    def read(self, name: MarkName) -> State | None:
        """The content of a mark; None if it cannot be read or verified."""
        try:
            document: dict[str, Any] = json.loads(self._marks.read(name))
            statement = document["statement"]
            is_signed = self._signer.ring.verify(document, ("checkpoint", name.sequence))
            if not is_signed or (statement["kind"], statement["name"]) != (_KIND, str(name)):
                return None
            return State(name, Balance.from_json(statement["balance"]))
        except (ObjectMissing, ValueError, TypeError, KeyError, IndexError, AttributeError):
            return None


def describe_balance(account: Account) -> dict[str, Any]:
    """The balance for a mark. It states a freeze even if the chain could not record it."""
    try:
        whole = account.stored.whole()
    except (ValueError, TypeError, AttributeError):  # edited columns; the mark then has no readable balance
        whole = {}
    return {**whole, "frozen": account.frozen_at is not None}


def has_checkpoint(session: ReadSession, name: MarkName) -> bool:
    """Whether the database contains the checkpoint of a mark; an empty first mark needs none."""
    if name.sequence == 0:
        return True
    checkpoint = exists().where(Checkpoint.sequence == name.sequence, Checkpoint.checkpoint_hash == name.digest)
    return bool(session.scalar(select(checkpoint)))
