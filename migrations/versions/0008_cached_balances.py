"""The cached balance holds the values that every entry changes; limits have a separate column.

The balance counts open reservations instead of listing them. The signed snapshot still holds everything. The account
also holds the sequence of its newest checkpoint, so that one statement locks and reads everything for a charge.

Revises: 0007
"""

import hashlib
from typing import Any

import rfc8785
import sqlalchemy as sa
from alembic import op

revision = "0008"
down_revision = "0007"
branch_labels = None
depends_on = None

Document = dict[str, Any]
UNENDED = ("reserved", "opened")
MOVING = ("spent", "reserved", "settled", "frozen", "unended")


def upgrade() -> None:
    op.add_column("ledger_accounts", sa.Column("checkpoint", sa.Integer(), nullable=True))
    op.add_column("ledger_accounts", sa.Column("limits", sa.JSON(), nullable=True))
    connection, accounts = op.get_bind(), _accounts()
    for account_id, balance, snapshot in connection.execute(_read(accounts, "balance", "snapshot")).all():
        connection.execute(sa.update(accounts).where(accounts.c.id == account_id).values(_split_balance(balance, snapshot)))
    with op.batch_alter_table("ledger_accounts") as table:
        table.alter_column("checkpoint", existing_type=sa.Integer(), nullable=False)
        table.alter_column("limits", existing_type=sa.JSON(), nullable=False)


def downgrade() -> None:
    connection, accounts = op.get_bind(), _accounts()
    for account_id, limits, amounts in connection.execute(_read(accounts, "limits", "balance")).all():
        values = {"balance": _list_reservations(account_id, _merge(limits, amounts))}
        connection.execute(sa.update(accounts).where(accounts.c.id == account_id).values(values))
    with op.batch_alter_table("ledger_accounts") as table:
        table.drop_column("checkpoint")
        table.drop_column("limits")


def _split_balance(balance: Document, snapshot: Document) -> Document:
    """The new columns of an account.

    A malformed document remains unchanged, so that the ledger freezes that account and no other.
    """
    try:
        counted = {name: value for name, value in balance.items() if name != "live"}
        limits, amounts = _split(counted | {"unended": len(balance["live"])})
        return {"limits": limits, "balance": amounts, "checkpoint": int(snapshot["checkpoint"])}
    except (AttributeError, KeyError, TypeError, ValueError):
        return {"limits": {}, "balance": balance, "checkpoint": 0}


def _accounts() -> sa.TableClause:
    documents = [sa.column(name, sa.JSON()) for name in ("limits", "balance", "snapshot")]
    return sa.table("ledger_accounts", sa.column("id"), sa.column("checkpoint"), *documents)


def _read(accounts: sa.TableClause, *names: str) -> sa.Select[Any]:
    return sa.select(accounts.c.id, *(accounts.c[name] for name in names))


def _split(document: Document) -> tuple[Document, Document]:
    """Two documents of the same shape: values that change rarely, and values that every entry changes."""
    limits: Document = {}
    amounts: Document = {}
    for name, value in document.items():
        if name in MOVING:
            amounts[name] = value
        elif name == "unit" or not isinstance(value, dict | list):
            limits[name] = value
        elif isinstance(value, dict):
            limits[name], amounts[name] = _split(value)
        else:
            pairs = [_split(each) for each in value]
            limits[name], amounts[name] = [pair[0] for pair in pairs], [pair[1] for pair in pairs]
    return limits, amounts


def _merge(limits: Any, amounts: Any) -> Any:
    if isinstance(limits, list):
        return [_merge(*pair) for pair in zip(limits, amounts, strict=True)]
    shared = {name: _merge(limits[name], amounts[name]) for name in limits.keys() & amounts.keys()}
    return {**limits, **amounts, **shared}


def _list_reservations(account_id: str, balance: Document) -> Document:
    jobs = sa.table("ledger_reservations", *(sa.column(name) for name in ("job_id", "account_id", "state")))
    entries = sa.table(
        "ledger_entries",
        *(sa.column(name) for name in ("account_id", "job_id", "kind", "sequence")),
        sa.column("body", sa.JSON()),
    )
    first = sa.and_(entries.c.account_id == jobs.c.account_id, entries.c.job_id == jobs.c.job_id)
    query = sa.select(jobs.c.job_id, jobs.c.state, entries.c.sequence, entries.c.body).join_from(jobs, entries, first)
    unended = query.where(jobs.c.account_id == account_id, jobs.c.state.in_(UNENDED), entries.c.kind == "reserved")
    rows = op.get_bind().execute(unended).all()
    live = {job_id: [state, sequence, _digest(body)] for job_id, state, sequence, body in rows}
    return {name: value for name, value in balance.items() if name != "unended"} | {"live": live}


def _digest(document: Document) -> str:
    return hashlib.sha256(rfc8785.dumps(document)).hexdigest()
