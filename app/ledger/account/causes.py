"""Why accounts were frozen, as their chains record it."""

from collections import Counter
from collections.abc import Mapping
from typing import Any

from sqlalchemy import and_, select

from app.db import ReadSession
from app.ledger.account.locked_account import Cause
from app.ledger.entries.balance import FROZEN
from app.ledger.models import Account, Entry

_OF_FREEZE = and_(Entry.account_id == Account.id, Entry.kind == FROZEN, Entry.at == Account.frozen_at)
"""The entry of the present freeze. There is none if the chain did not verify when the account was frozen."""
_CAUSES = select(Entry.body).select_from(Account).outerjoin(Entry, _OF_FREEZE).where(Account.frozen_at.is_not(None))


def parse_cause(body: Mapping[str, Any] | None) -> Cause:
    """Read the cause from the body of a freeze's entry; entries of earlier versions have none."""
    stated = (body or {}).get("cause")
    return Cause(stated) if stated in set(Cause) else Cause.UNKNOWN


def read_cause(session: ReadSession, account: Account) -> Cause:
    """The cause of the freeze of a frozen account."""
    return parse_cause(session.scalars(_CAUSES.where(Account.id == account.id)).one_or_none())


def count_causes(session: ReadSession) -> Mapping[str, int]:
    """The number of frozen accounts by cause."""
    counted = Counter(map(parse_cause, session.scalars(_CAUSES)))
    return {str(cause): counted[cause] for cause in Cause}
