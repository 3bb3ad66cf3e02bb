"""The one clock that leases go by: the database's, so that no two workers can disagree about who is late."""

from datetime import datetime

from sqlalchemy import func, select

from app.db.base import UtcDateTime, now
from app.db.session import ReadSession


def moment(session: ReadSession) -> datetime:
    """What time the database has it. SQLite has no clock of its own, and no processes on other machines."""
    if session.get_bind().dialect.name == "sqlite":
        return now()
    return session.execute(select(func.clock_timestamp(type_=UtcDateTime()))).scalar_one()
