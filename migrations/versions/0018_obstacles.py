"""The audit log states which budget refused a job: the limit, a cap or an allocation.

Revises: 0017
"""

import sqlalchemy as sa
from alembic import op

revision = "0018"
down_revision = "0017"
branch_labels = None
depends_on = None

FACTS = "id, at, actor, action, target, outcome, status, code, count, request_id, reason"


def upgrade() -> None:
    op.add_column("audit_entries", sa.Column("obstacle", sa.String(), nullable=True))
    _guard(f"{FACTS}, obstacle")


def downgrade() -> None:
    """An older version reports entries with an obstacle as altered, because their hashes cover it."""
    _guard(FACTS)
    op.drop_column("audit_entries", "obstacle")


def _guard(facts: str) -> None:
    """Replaces the trigger that refuses changes of these columns of the audit log."""
    is_postgresql = op.get_bind().dialect.name == "postgresql"
    on = " ON audit_entries" if is_postgresql else ""
    op.execute(f"DROP TRIGGER audit_entries_facts{on}")
    run = (
        "FOR EACH ROW EXECUTE FUNCTION corevault_audit_append_only()"
        if is_postgresql
        else "BEGIN SELECT RAISE(ABORT, 'the audit log is append-only'); END"
    )
    op.execute(f"CREATE TRIGGER audit_entries_facts BEFORE UPDATE OF {facts} ON audit_entries {run}")
