"""TODO identity.

Revises: 0002
"""

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """To come."""


def downgrade() -> None:
    """To come."""
