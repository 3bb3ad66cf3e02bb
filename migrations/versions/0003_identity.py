"""API keys have a public prefix and a keyed hash; identities of other sources share their table.

Revises: 0002
"""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("api_keys", sa.Column("source", sa.String(), nullable=False, server_default="key"))
    op.add_column("api_keys", sa.Column("prefix", sa.String(), nullable=True))
    op.add_column("api_keys", sa.Column("last_used_at", sa.DateTime(timezone=True), nullable=True))
    op.create_index(op.f("ix_api_keys_prefix"), "api_keys", ["prefix"])


def downgrade() -> None:
    """Keys that were used after the upgrade must be rotated, because their plain hashes are gone."""
    op.drop_index(op.f("ix_api_keys_prefix"), table_name="api_keys")
    for column in ("last_used_at", "prefix", "source"):
        op.drop_column("api_keys", column)
