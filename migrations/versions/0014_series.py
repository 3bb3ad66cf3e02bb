"""Series of datasets in which each person counts once.

Revises: 0013
"""

import sqlalchemy as sa
from alembic import op

revision = "0014"
down_revision = "0013"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "series",
        sa.Column("owner_id", sa.String(), nullable=False),
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("unit", sa.JSON(), nullable=False),
        sa.Column("places", sa.Integer(), nullable=False),
        sa.ForeignKeyConstraint(["owner_id"], ["api_keys.id"], name="fk_series_owner_id"),
        sa.PrimaryKeyConstraint("owner_id", "name", name="pk_series"),
    )
    op.add_column("datasets", sa.Column("series", sa.String(), nullable=True))
    op.add_column("contents", sa.Column("series_place", sa.Integer(), nullable=True))
    op.add_column("contents", sa.Column("register_object", sa.String(), nullable=True))


def downgrade() -> None:
    op.drop_column("contents", "register_object")
    op.drop_column("contents", "series_place")
    op.drop_column("datasets", "series")
    op.drop_table("series")
