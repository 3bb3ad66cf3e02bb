"""Jobs record their handovers, and whether files of their attempts may remain.

Revises: 0006
"""

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None


def upgrade() -> None:
    with op.batch_alter_table("jobs") as jobs:
        jobs.add_column(sa.Column("handovers", sa.Integer(), nullable=False, server_default="0"))
        jobs.add_column(sa.Column("tidied", sa.Boolean(), nullable=False, server_default=sa.false()))
        jobs.create_index("ix_jobs_tidied", ["tidied"])


def downgrade() -> None:
    with op.batch_alter_table("jobs") as jobs:
        jobs.drop_index("ix_jobs_tidied")
        jobs.drop_column("tidied")
        jobs.drop_column("handovers")
