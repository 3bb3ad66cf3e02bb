"""The state of the continuous audit.

Revises: 0014
"""

from datetime import UTC, datetime

import sqlalchemy as sa
from alembic import op

revision = "0015"
down_revision = "0014"
branch_labels = None
depends_on = None

COUNTS = ("answers", "batches", "ticket")
NUMBERS = ("carried", "log_evidence", "log_largest", "interval_seconds")


def upgrade() -> None:
    table = op.create_table(
        "continuous_audit",
        sa.Column("id", sa.String(), nullable=False),
        sa.Column("resets", sa.Integer(), nullable=False),
        sa.Column("started_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("design", sa.String(), nullable=False),
        sa.Column("capitals", sa.JSON(), nullable=False),
        *(sa.Column(name, sa.Double(), nullable=False) for name in NUMBERS),
        *(sa.Column(name, sa.BigInteger(), nullable=False) for name in COUNTS),
        *(sa.Column(name, sa.DateTime(timezone=True), nullable=True) for name in ("last_at", "alarmed_at", "ticket_until")),
        sa.Column("damaged", sa.Boolean(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_continuous_audit"),
    )
    start = {"id": "continuous", "resets": 0, "started_at": datetime.now(UTC), "design": "", "capitals": {}}
    op.bulk_insert(table, [start | dict.fromkeys(NUMBERS, 0.0) | dict.fromkeys(COUNTS, 0) | {"damaged": False}])


def downgrade() -> None:
    op.drop_table("continuous_audit")
