"""Triggers make the ledger's hash chains append-only in the database.

Revises: 0001
"""

from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None

TABLES = {
    "ledger_entries": "account_id = NEW.account_id AND sequence = NEW.sequence",
    "ledger_checkpoints": "sequence = NEW.sequence",
}
REFUSAL = "the ledger is append-only"


def upgrade() -> None:
    if op.get_bind().dialect.name == "postgresql":
        op.execute(
            "CREATE FUNCTION corevault_append_only() RETURNS trigger LANGUAGE plpgsql AS "
            f"$$ BEGIN RAISE EXCEPTION '{REFUSAL}'; END $$"
        )
        for table in TABLES:
            op.execute(
                f"CREATE TRIGGER {table}_append_only BEFORE UPDATE OR DELETE ON {table} "
                "FOR EACH ROW EXECUTE FUNCTION corevault_append_only()"
            )
            op.execute(
                f"CREATE TRIGGER {table}_no_truncate BEFORE TRUNCATE ON {table} "
                "FOR EACH STATEMENT EXECUTE FUNCTION corevault_append_only()"
            )
        return
    for table, same_row in TABLES.items():
        op.execute(  # SQLite's REPLACE deletes rows without DELETE triggers
            f"CREATE TRIGGER {table}_no_replace BEFORE INSERT ON {table} "
            f"WHEN EXISTS (SELECT 1 FROM {table} WHERE {same_row}) BEGIN SELECT RAISE(ABORT, '{REFUSAL}'); END"
        )
        for action in ("UPDATE", "DELETE"):
            op.execute(
                f"CREATE TRIGGER {table}_no_{action.lower()} BEFORE {action} ON {table} "
                f"BEGIN SELECT RAISE(ABORT, '{REFUSAL}'); END"
            )


def downgrade() -> None:
    postgresql = op.get_bind().dialect.name == "postgresql"
    for table in TABLES:
        suffixes = ("append_only", "no_truncate") if postgresql else ("no_update", "no_delete", "no_replace")
        for suffix in suffixes:
            op.execute(f"DROP TRIGGER {table}_{suffix}" + (f" ON {table}" if postgresql else ""))
    if postgresql:
        op.execute("DROP FUNCTION corevault_append_only()")
