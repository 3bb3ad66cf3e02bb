"""A rejected content names the columns that caused the rejection.

Revises: 0010
"""

import sqlalchemy as sa
from alembic import op

revision = "0011"
down_revision = "0010"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("contents", sa.Column("rejection_columns", sa.JSON(), nullable=True))


def downgrade() -> None:
    op.drop_column("contents", "rejection_columns")
