"""Unfreezing: another kind of ledger entry, and a reason in the audit log.

Revises: 0009
"""

import sqlalchemy as sa
from alembic import op

revision = "0010"
down_revision = "0009"
branch_labels = None
depends_on = None

KINDS = (
    *("account_opened", "reserved", "opened", "settled", "voided", "limit_changed"),
    *("content_replaced", "dataset_deleted", "frozen"),
)
FACTS = "id, at, actor, action, target, outcome, status, code, count, request_id"


def upgrade() -> None:
    _allow((*KINDS, "unfrozen"))
    op.add_column("audit_entries", sa.Column("reason", sa.String(), nullable=True))
    _guard(f"{FACTS}, reason")


def downgrade() -> None:
    """The constraint refuses this after an unfreeze, because an older version could not read the chain."""
    _allow(KINDS)
    _guard(FACTS)
    op.drop_column("audit_entries", "reason")


def _allow(kinds: tuple[str, ...]) -> None:
    name = op.f("ck_ledger_entries_kind")
    with op.batch_alter_table("ledger_entries") as entries:
        entries.drop_constraint(name, type_="check")
        entries.create_check_constraint(name, f"kind IN {kinds}")
    if not _postgresql():
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


def _guard(facts: str) -> None:
    """Replaces the trigger that refuses changes of these columns of the audit log."""
    on = " ON audit_entries" if _postgresql() else ""
    op.execute(f"DROP TRIGGER audit_entries_facts{on}")
    run = (
        "FOR EACH ROW EXECUTE FUNCTION corevault_audit_append_only()"
        if _postgresql()
        else "BEGIN SELECT RAISE(ABORT, 'the audit log is append-only'); END"
    )
    op.execute(f"CREATE TRIGGER audit_entries_facts BEFORE UPDATE OF {facts} ON audit_entries {run}")


def _postgresql() -> bool:
    return op.get_bind().dialect.name == "postgresql"
