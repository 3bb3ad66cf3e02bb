"""The audit log, append-only in the database, and the request of each job.

Revises: 0005
"""

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None

REFUSAL = "the audit log is append-only"
FACTS = "id, at, actor, action, target, outcome, status, code, count, request_id"


def upgrade() -> None:
    op.create_table(
        "audit_entries",
        sa.Column("id", sa.String(), nullable=False),
        sa.Column("at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("actor", sa.String(), nullable=True),
        sa.Column("action", sa.String(), nullable=False),
        sa.Column("target", sa.String(), nullable=True),
        sa.Column("outcome", sa.String(), nullable=False),
        sa.Column("status", sa.Integer(), nullable=False),
        sa.Column("code", sa.String(), nullable=True),
        sa.Column("count", sa.Integer(), nullable=False),
        sa.Column("request_id", sa.String(), nullable=True),
        sa.Column("sequence", sa.Integer(), nullable=True),
        sa.Column("previous_hash", sa.String(), nullable=True),
        sa.Column("entry_hash", sa.String(), nullable=True),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_audit_entries")),
    )
    op.create_index(op.f("ix_audit_entries_actor"), "audit_entries", ["actor"], unique=False)
    op.create_index("ix_audit_entries_sequence", "audit_entries", ["sequence"], unique=True)
    unchained = sa.text("sequence IS NULL")
    op.create_index(
        "ix_audit_entries_unchained", "audit_entries", ["id"], sqlite_where=unchained, postgresql_where=unchained
    )
    op.create_table(
        "audit_heads",
        sa.Column("sequence", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("entry_hash", sa.String(), nullable=False),
        sa.Column("signature", sa.String(), nullable=False),
        sa.Column("key_id", sa.String(), nullable=False),
        sa.PrimaryKeyConstraint("sequence", name=op.f("pk_audit_heads")),
    )
    op.add_column("jobs", sa.Column("request_id", sa.String(), nullable=True))
    op.add_column("jobs", sa.Column("trace", sa.String(), nullable=True))
    _guard_postgresql() if op.get_bind().dialect.name == "postgresql" else _guard_sqlite()


def _guard_postgresql() -> None:
    op.execute(
        "CREATE FUNCTION corevault_audit_append_only() RETURNS trigger LANGUAGE plpgsql AS "
        f"$$ BEGIN RAISE EXCEPTION '{REFUSAL}'; END $$"
    )
    run = "EXECUTE FUNCTION corevault_audit_append_only()"
    for name, when in (
        ("audit_entries_no_delete BEFORE DELETE ON audit_entries", "FOR EACH ROW"),
        ("audit_entries_facts BEFORE UPDATE OF " + FACTS + " ON audit_entries", "FOR EACH ROW"),
        ("audit_entries_chained BEFORE UPDATE ON audit_entries", "FOR EACH ROW WHEN (OLD.sequence IS NOT NULL)"),
        ("audit_entries_no_truncate BEFORE TRUNCATE ON audit_entries", "FOR EACH STATEMENT"),
        ("audit_heads_append_only BEFORE UPDATE OR DELETE ON audit_heads", "FOR EACH ROW"),
        ("audit_heads_no_truncate BEFORE TRUNCATE ON audit_heads", "FOR EACH STATEMENT"),
    ):
        op.execute(f"CREATE TRIGGER {name} {when} {run}")


def _guard_sqlite() -> None:
    refuse = f"BEGIN SELECT RAISE(ABORT, '{REFUSAL}'); END"
    for name, when in (
        ("audit_entries_no_delete BEFORE DELETE ON audit_entries", ""),
        ("audit_entries_facts BEFORE UPDATE OF " + FACTS + " ON audit_entries", ""),
        ("audit_entries_chained BEFORE UPDATE ON audit_entries", "WHEN OLD.sequence IS NOT NULL"),
        (
            "audit_entries_no_replace BEFORE INSERT ON audit_entries",  # REPLACE runs no DELETE trigger
            "WHEN EXISTS (SELECT 1 FROM audit_entries WHERE id = NEW.id OR sequence = NEW.sequence)",
        ),
        ("audit_heads_no_update BEFORE UPDATE ON audit_heads", ""),
        ("audit_heads_no_delete BEFORE DELETE ON audit_heads", ""),
        (
            "audit_heads_no_replace BEFORE INSERT ON audit_heads",
            "WHEN EXISTS (SELECT 1 FROM audit_heads WHERE sequence = NEW.sequence)",
        ),
    ):
        op.execute(f"CREATE TRIGGER {name} {when} {refuse}")


def downgrade() -> None:
    op.drop_column("jobs", "trace")
    op.drop_column("jobs", "request_id")
    op.drop_table("audit_heads")
    op.drop_table("audit_entries")
    if op.get_bind().dialect.name == "postgresql":
        op.execute("DROP FUNCTION corevault_audit_append_only()")
