"""Fresh starts of the continuous audit by an operator."""

from typing import Final

from sqlalchemy import delete, func, select

from app.audit.journal import record_command
from app.audit.models import AuditEntry
from app.continuous_audit.models import ROW_ID, AuditState
from app.continuous_audit.status import read_status
from app.db import WriteSession, now
from app.errors import InvalidRequest, StateConflict

RESET: Final = "reset-audit"
"""The operator's command in the audit log."""
_NO_REASON: Final = "State the reason of the reset: the audit log records it."
_NO_ALARM: Final = (
    "There is no alarm, and the state of the audit is not damaged. A fresh start would only hide evidence."
)


def reset(tx: WriteSession, reason: str) -> int:
    """Start the e-process again at 1, with a doubled threshold.

    The audit log records it.

    Returns:
        The number of fresh starts so far.

    Raises:
        InvalidRequest: the reason is blank.
        StateConflict: there is neither an alarm nor damage, by the status that metrics and the dashboard show.
    """
    if not reason.strip():
        raise InvalidRequest.at("/reason", _NO_REASON)
    status = read_status(tx)
    if not (status.has_alarm or status.is_damaged):
        raise StateConflict(_NO_ALARM)
    earlier = tx.scalar(select(func.count()).where(AuditEntry.action == f"corevaultd {RESET}")) or 0
    tx.execute(delete(AuditState))
    tx.add(make_state(resets=earlier + 1))
    tx.flush()
    record_command(tx, RESET, reason=reason)
    return earlier + 1


def make_state(resets: int = 0) -> AuditState:
    """Make the state of an e-process that has not begun."""
    at = now()
    return AuditState(
        id=ROW_ID,
        resets=resets,
        started_at=at,
        design="",
        carried=0.0,
        capitals={},
        log_evidence=0.0,
        log_largest=0.0,
        answers=0,
        batches=0,
        interval_seconds=0.0,
        damaged=False,
        ticket=int(1000 * at.timestamp()),  # larger than all before, so that no lost batch is recorded
    )
