"""Sign-ins at the dashboard.

Revises: 0012
"""

import sqlalchemy as sa
from alembic import op

revision = "0013"
down_revision = "0012"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "sign_ins",
        sa.Column("id", sa.String(), nullable=False),
        sa.Column("key_id", sa.String(), nullable=False),
        sa.Column("token_hash", sa.String(), nullable=False),
        *(
            sa.Column(name, sa.DateTime(timezone=True), nullable=False)
            for name in ("created_at", "last_used_at", "expires_at")
        ),
        sa.ForeignKeyConstraint(["key_id"], ["api_keys.id"], name="fk_sign_ins_key_id"),
        sa.PrimaryKeyConstraint("id", name="pk_sign_ins"),
    )
    op.create_index("ix_sign_ins_key_id", "sign_ins", ["key_id"])
    op.create_index("ix_sign_ins_expires_at", "sign_ins", ["expires_at"])


def downgrade() -> None:
    op.drop_table("sign_ins")
