"""Database constraints as a second check of the ledger's rules.

Every account has its used epsilon and its limit in plain columns, so that a constraint can compare them.

Revises: 0003
"""

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None

KINDS = (
    *("account_opened", "reserved", "opened", "settled", "voided", "limit_changed"),
    *("content_replaced", "dataset_deleted", "frozen"),
)
STATES = ("reserved", "opened", "settled", "voided")
CHECKS = {
    "ledger_accounts": {
        "sequence": "sequence > 0",
        "within": "epsilon_used >= 0 AND epsilon_used <= epsilon_limit + 1e-9",
    },
    "ledger_datasets": {"refused": "refused >= 0"},
    "ledger_reservations": {"sequence": "sequence > 0", "state": f"state IN {STATES}"},
    "ledger_entries": {
        "sequence": "sequence > 0",
        "kind": f"kind IN {KINDS}",
        "epsilon_after": "epsilon_after >= 0",
    },
    "ledger_checkpoints": {"sequence": "sequence > 0 AND account_sequence > 0"},
}
SAME_ROW = {
    "ledger_entries": "account_id = NEW.account_id AND sequence = NEW.sequence",
    "ledger_checkpoints": "sequence = NEW.sequence",
}
REFUSAL = "the ledger is append-only"


def upgrade() -> None:
    op.add_column("ledger_accounts", sa.Column("epsilon_used", sa.Double(), nullable=True))
    op.add_column("ledger_accounts", sa.Column("epsilon_limit", sa.Double(), nullable=True))
    _fill()
    for table, checks in CHECKS.items():
        with op.batch_alter_table(table) as batch:
            if table == "ledger_accounts":
                batch.alter_column("epsilon_used", existing_type=sa.Double(), nullable=False)
                batch.alter_column("epsilon_limit", existing_type=sa.Double(), nullable=False)
            for name, condition in checks.items():
                batch.create_check_constraint(op.f(f"ck_{table}_{name}"), condition)
    _restore_triggers()
    if _postgresql():  # every entry updates the account's row: leave room on the page for its next version
        op.execute("ALTER TABLE ledger_accounts SET (fillfactor = 40)")
        op.execute("ALTER TABLE ledger_reservations SET (fillfactor = 80)")


def downgrade() -> None:
    for table, checks in CHECKS.items():
        with op.batch_alter_table(table) as batch:
            for name in checks:
                batch.drop_constraint(op.f(f"ck_{table}_{name}"), type_="check")
            if table == "ledger_accounts":
                batch.drop_column("epsilon_used")
                batch.drop_column("epsilon_limit")
    _restore_triggers()


def _fill() -> None:
    """Fills in the used epsilon and the limit of existing accounts."""
    accounts = sa.table(
        "ledger_accounts",
        *(sa.column(name) for name in ("id", "sequence", "epsilon_used", "epsilon_limit")),
        sa.column("balance", sa.JSON()),
    )
    entries = sa.table("ledger_entries", *(sa.column(name) for name in ("account_id", "sequence", "epsilon_after")))
    newest = sa.and_(entries.c.account_id == accounts.c.id, entries.c.sequence == accounts.c.sequence)
    query = sa.select(accounts.c.id, accounts.c.balance, entries.c.epsilon_after).join_from(
        accounts, entries, newest, isouter=True
    )
    connection = op.get_bind()
    for account_id, balance, used in connection.execute(query).all():
        limit = balance["total"]["epsilon"]
        values = {"epsilon_used": min(used or 0.0, limit), "epsilon_limit": limit}
        connection.execute(sa.update(accounts).where(accounts.c.id == account_id).values(values))


def _restore_triggers() -> None:
    """Creates the triggers of 0002 again. SQLite adds a constraint by a new table, without triggers."""
    if _postgresql():
        return
    for table, same_row in SAME_ROW.items():
        op.execute(
            f"CREATE TRIGGER {table}_no_replace BEFORE INSERT ON {table} "
            f"WHEN EXISTS (SELECT 1 FROM {table} WHERE {same_row}) BEGIN SELECT RAISE(ABORT, '{REFUSAL}'); END"
        )
        for action in ("UPDATE", "DELETE"):
            op.execute(
                f"CREATE TRIGGER {table}_no_{action.lower()} BEFORE {action} ON {table} "
                f"BEGIN SELECT RAISE(ABORT, '{REFUSAL}'); END"
            )


def _postgresql() -> bool:
    return op.get_bind().dialect.name == "postgresql"
