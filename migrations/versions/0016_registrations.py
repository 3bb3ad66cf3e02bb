"""Registers of people in a series: another kind of ledger entry.

Revises: 0015
"""

from alembic import op

revision = "0016"
down_revision = "0015"
branch_labels = None
depends_on = None

KINDS = (
    *("account_opened", "reserved", "opened", "settled", "voided", "limit_changed"),
    *("content_replaced", "dataset_deleted", "frozen", "unfrozen"),
)


def upgrade() -> None:
    _allow((*KINDS, "people_registered"))


def downgrade() -> None:
    """The constraint refuses this after a registration, because an older version could not read the chain."""
    _allow(KINDS)


def _allow(kinds: tuple[str, ...]) -> None:
    name = op.f("ck_ledger_entries_kind")
    with op.batch_alter_table("ledger_entries") as entries:
        entries.drop_constraint(name, type_="check")
        entries.create_check_constraint(name, f"kind IN {kinds}")
    if op.get_bind().dialect.name != "postgresql":
        _restore_triggers()


def _restore_triggers() -> None:
    """Creates the triggers of 0002 again. SQLite adds a constraint by a new table, without triggers."""
    refuse = "BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END"
    same = "SELECT 1 FROM ledger_entries WHERE account_id = NEW.account_id AND sequence = NEW.sequence"
    for name, when in (
        ("no_replace BEFORE INSERT", f"WHEN EXISTS ({same})"),
        ("no_update BEFORE UPDATE", ""),
        ("no_delete BEFORE DELETE", ""),
    ):
        op.execute(f"CREATE TRIGGER ledger_entries_{name} ON ledger_entries {when} {refuse}")
