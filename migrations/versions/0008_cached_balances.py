"""An account's cached balance is what every entry changes: its limits lie beside it, its reservations are counted.

The signed snapshot goes on saying all of it. The account also says which checkpoint is its newest, so that one statement locks and reads all that a charge needs.

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
        connection.execute(sa.update(accounts).where(accounts.c.id == account_id).values(_cached(balance, snapshot)))
    with op.batch_alter_table("ledger_accounts") as table:
        table.alter_column("checkpoint", existing_type=sa.Integer(), nullable=False)
        table.alter_column("limits", existing_type=sa.JSON(), nullable=False)


def downgrade() -> None:
    connection, accounts = op.get_bind(), _accounts()
    for account_id, limits, amounts in connection.execute(_read(accounts, "limits", "balance")).all():
        values = {"balance": _listed(account_id, _merged(limits, amounts))}
        connection.execute(sa.update(accounts).where(accounts.c.id == account_id).values(values))
    with op.batch_alter_table("ledger_accounts") as table:
        table.drop_column("checkpoint")
        table.drop_column("limits")


def _cached(balance: Document, snapshot: Document) -> Document:
    """What somebody has edited past reading stays as it is, for the ledger to freeze: others' accounts go on."""
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
    """What seldom changes, and what every entry changes: two documents of one shape."""
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


def _merged(limits: Any, amounts: Any) -> Any:
    if isinstance(limits, list):
        return [_merged(*pair) for pair in zip(limits, amounts, strict=True)]
    shared = {name: _merged(limits[name], amounts[name]) for name in limits.keys() & amounts.keys()}
    return {**limits, **amounts, **shared}


def _listed(account_id: str, balance: Document) -> Document:
    jobs = sa.table("ledger_reservations", *(sa.column(name) for name in ("job_id", "account_id", "state")))
    entries = sa.table(
        "ledger_entries",
        *(sa.column(name) for name in ("account_id", "job_id", "kind", "sequence")),
        sa.column("body", sa.JSON()),
    )
    first = sa.and_(entries.c.account_id == jobs.c.account_id, entries.c.job_id == jobs.c.job_id)
    query = sa.select(jobs.c.job_id, jobs.c.state, entries.c.sequence, entries.c.body).join_from(jobs, entries, first)
    unended = query.where(jobs.c.account_id == account_id, jobs.c.state.in_(UNENDED), entries.c.kind == "reserved")
    found = op.get_bind().execute(unended).all()
    live = {job_id: [state, sequence, _digest(body)] for job_id, state, sequence, body in found}
    return {name: value for name, value in balance.items() if name != "unended"} | {"live": live}


def _digest(document: Document) -> str:
    return hashlib.sha256(rfc8785.dumps(document)).hexdigest()
