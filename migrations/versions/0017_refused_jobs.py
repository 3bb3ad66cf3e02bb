"""An index of the jobs that a budget refused, by dataset.

Revises: 0016
"""

import sqlalchemy as sa
from alembic import op

revision = "0017"
down_revision = "0016"
branch_labels = None
depends_on = None

NAME = "ix_audit_entries_over_budget"


def upgrade() -> None:
    where = sa.text("code = 'budget_exceeded'")
    op.create_index(NAME, "audit_entries", ["target", "id"], sqlite_where=where, postgresql_where=where)


def downgrade() -> None:
    op.drop_index(NAME, "audit_entries")
