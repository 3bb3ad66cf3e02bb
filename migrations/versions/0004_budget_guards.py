"""TODO budget_guards.

Revises: 0003
"""

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """To come."""


def downgrade() -> None:
    """To come."""
