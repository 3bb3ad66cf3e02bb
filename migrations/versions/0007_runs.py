"""TODO runs.

Revises: 0006
"""

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """To come."""


def downgrade() -> None:
    """To come."""
