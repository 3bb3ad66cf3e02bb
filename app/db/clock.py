"""The clock for leases: the database's, so all workers agree on the time."""

from datetime import datetime

from sqlalchemy import func, select

from app.db.base import UtcDateTime, now
from app.db.session import ReadSession


def read_time(session: ReadSession) -> datetime:
    """The database's time. SQLite has no clock and no clients on other machines, so this machine's time is used."""
    if session.get_bind().dialect.name == "sqlite":
        return now()
    return session.execute(select(func.clock_timestamp(type_=UtcDateTime()))).scalar_one()
