"""A cache of verified heads; it saves the replay from a signed snapshot at every call.

An account that does not continue its cached head is verified from the snapshot.
"""

from collections import OrderedDict
from dataclasses import dataclass
from threading import Lock

from app.ledger.entries.balance_columns import BalanceColumns
from app.ledger.integrity.chain import Ends, Head
from app.ledger.models import Account

REMEMBERED_ACCOUNTS = 256


@dataclass(frozen=True, slots=True)
class VerifiedHead:
    """A verified head, how its balance is stored, and the account's newest checkpoint then."""

    head: Head
    stored: BalanceColumns
    checkpoint: int

    def is_current(self, account: Account, ends: Ends) -> bool:
        """Whether the locked account is unchanged: its row is equal and its chains end there."""
        return (
            (self.head.sequence, self.head.entry_hash, self.checkpoint)
            == (account.sequence, account.head_hash, account.checkpoint)
            and ends.within(account.sequence, account.checkpoint)
            and self.stored == account.stored
        )


class VerifiedHeads:
    """The newest verified head of the accounts that were used last; shared by the threads of a process."""

    def __init__(self) -> None:
        self._known: OrderedDict[str, VerifiedHead] = OrderedDict()
        self._lock = Lock()

    def recall(self, account_id: str) -> VerifiedHead | None:
        return self._known.get(account_id)

    def remember(self, account_id: str, seen: VerifiedHead) -> None:
        with self._lock:
            cached = self._known.pop(account_id, None)
            newer = cached is None or (cached.head.sequence, cached.checkpoint) < (seen.head.sequence, seen.checkpoint)
            self._known[account_id] = seen if newer or cached is None else cached
            if len(self._known) > REMEMBERED_ACCOUNTS:
                self._known.popitem(last=False)

    def forget(self, account_id: str) -> None:
        with self._lock:
            self._known.pop(account_id, None)
