"""TODO audit_log.

Revises: 0005
"""

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """To come."""


def downgrade() -> None:
    """To come."""
