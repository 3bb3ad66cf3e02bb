"""Rows of API keys have a seal under the identity key. This seals the existing rows once.

Keys with only a plain hash (not used since keyed hashes exist) get no seal, and stop working.

Revises: 0008
"""

import sqlalchemy as sa
from alembic import context, op

revision = "0009"
down_revision = "0008"
branch_labels = None
depends_on = None

FIELDS = ("id", "source", "role", "prefix", "secret_hash")


def upgrade() -> None:
    op.add_column("api_keys", sa.Column("seal", sa.String(), nullable=True))
    connection, keys = op.get_bind(), _keys()
    keyed = sa.or_(keys.c.source != "key", keys.c.prefix.is_not(None))
    for row in connection.execute(sa.select(keys).where(keys.c.revoked_at.is_(None), keyed)).mappings().all():
        sealed = context.config.attributes["seal_caller"](dict(row))
        connection.execute(sa.update(keys).where(keys.c.id == row["id"]).values(seal=sealed))


def downgrade() -> None:
    op.drop_column("api_keys", "seal")


def _keys() -> sa.TableClause:
    times = [sa.column(name, sa.DateTime(timezone=True)) for name in ("expires_at", "revoked_at")]
    return sa.table("api_keys", *(sa.column(name) for name in FIELDS), *times, sa.column("seal"))
