"""Engine, sessions and the declarative base."""

from app.db.background import BackgroundWriter, Write
from app.db.base import Base, JsonObject, UtcDateTime, generate_id, now
from app.db.clock import read_time
from app.db.engine import make_engine
from app.db.group_commit import GroupCommit
from app.db.session import Database, ReadSession, WriteSession

__all__ = [
    "BackgroundWriter",
    "Base",
    "Database",
    "GroupCommit",
    "JsonObject",
    "ReadSession",
    "UtcDateTime",
    "Write",
    "WriteSession",
    "generate_id",
    "make_engine",
    "now",
    "read_time",
]
