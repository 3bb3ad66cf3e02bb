"""A job states its purpose.

Revises: 0011
"""

import sqlalchemy as sa
from alembic import op

revision = "0012"
down_revision = "0011"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("jobs", sa.Column("purpose", sa.String(), nullable=True))


def downgrade() -> None:
    op.drop_column("jobs", "purpose")
