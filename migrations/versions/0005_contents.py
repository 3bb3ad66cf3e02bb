"""TODO contents.

Revises: 0004
"""

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """To come."""


def downgrade() -> None:
    """To come."""
