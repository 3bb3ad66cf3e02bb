"""Writing an entry, the account's new head and the job's row in the index.

The statements are built once. On PostgreSQL they are one statement, which shortens the time under the account's lock.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sqlalchemy import bindparam, insert, update
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm.attributes import set_committed_value

from app.db import WriteSession
from app.errors import Internal, StateConflict
from app.ledger.entries.balance_columns import BalanceColumns
from app.ledger.integrity.chain import Draft
from app.ledger.models import Account, Entry, Reservation

_ENTRIES, _ACCOUNTS, _RESERVATIONS = (
    model.metadata.tables[model.__tablename__] for model in (Entry, Account, Reservation)
)
_ENTRY = insert(_ENTRIES).values({column.name: bindparam(f"entry_{column.name}") for column in _ENTRIES.columns})
_HEAD = (
    update(_ACCOUNTS)
    .where(_ACCOUNTS.c.id == bindparam("entry_account_id"), _ACCOUNTS.c.sequence == bindparam("known_sequence"))
    .values(
        sequence=bindparam("entry_sequence"),
        head_hash=bindparam("entry_entry_hash"),
        balance=bindparam("new_balance", type_=_ACCOUNTS.c.balance.type),
        epsilon_used=bindparam("entry_epsilon_after"),
        epsilon_limit=bindparam("new_limit"),
    )
)
_PLACED = insert(_RESERVATIONS).values(
    job_id=bindparam("entry_job_id"),
    account_id=bindparam("entry_account_id"),
    dataset_id=bindparam("entry_dataset_id"),
    state=bindparam("entry_kind"),
    sequence=bindparam("entry_sequence"),
)
_MOVED = (
    update(_RESERVATIONS)
    .where(_RESERVATIONS.c.job_id == bindparam("entry_job_id"))
    .values(state=bindparam("entry_kind"), sequence=bindparam("entry_sequence"))
)
_BEFORE = {None: (_ENTRY,), "placed": (_ENTRY, _PLACED), "moved": (_ENTRY, _MOVED)}
_TOGETHER = {
    job: _HEAD.add_cte(*(statement.cte(f"also_{number}") for number, statement in enumerate(statements)))
    for job, statements in _BEFORE.items()
}

PLACED_ALREADY = "The job has a reservation already."


@dataclass(frozen=True, slots=True)
class Step:
    """An entry to write. ``job``: ``placed`` inserts the job's index row, ``moved`` updates it, None does neither."""

    entry: Draft
    stored: BalanceColumns
    job: str | None = None


def write(tx: WriteSession, account: Account, step: Step) -> None:
    """Extend the account's chain by an entry. The account is locked.

    Raises:
        StateConflict: the index contains the job already.
        Internal: the account changed although it was locked.
    """
    tx.flush()
    values = {f"entry_{column.name}": getattr(step.entry, column.name) for column in _ENTRIES.columns}
    limit = step.stored.limits["total"]["epsilon"]
    values |= {"known_sequence": account.sequence, "new_balance": step.stored.amounts, "new_limit": limit}
    try:
        moved = _execute(tx, step.job, values)
    except IntegrityError as error:
        if _RESERVATIONS.name in str(error.orig):
            raise StateConflict(PLACED_ALREADY) from None
        raise
    if moved != 1:
        raise Internal
    if step.stored.limits != account.limits:
        account.limits = step.stored.limits
    head = {"sequence": step.entry.sequence, "head_hash": step.entry.entry_hash, "balance": step.stored.amounts}
    for name, value in (head | {"epsilon_used": step.entry.epsilon_after, "epsilon_limit": limit}).items():
        set_committed_value(account, name, value)


def _execute(tx: WriteSession, job: str | None, values: Mapping[str, Any]) -> int:
    connection = tx.connection()
    if connection.dialect.name == "postgresql":
        return connection.execute(_TOGETHER[job], values).rowcount
    for statement in _BEFORE[job]:
        connection.execute(statement, values)
    return connection.execute(_HEAD, values).rowcount
