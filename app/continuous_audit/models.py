"""The table of the continuous audit, with one row. A migration adds it, so a missing row is damage."""

from datetime import datetime
from typing import Any

from sqlalchemy import BigInteger
from sqlalchemy.orm import Mapped, mapped_column

from app.db import Base
from app.db.base import JsonObject

ROW_ID = "continuous"


class AuditState(Base):
    """The state of the current e-process. Logarithms are natural."""

    __tablename__ = "continuous_audit"

    id: Mapped[str] = mapped_column(primary_key=True)
    resets: Mapped[int]  # resets by operators; each one doubles the threshold
    started_at: Mapped[datetime]
    design: Mapped[str]  # digest of the streams, weights and alternatives of the capitals
    carried: Mapped[float]  # log-evidence at the last change of the design, before the present capitals
    capitals: Mapped[dict[str, Any]] = mapped_column(JsonObject)  # stream -> batches and bets
    log_evidence: Mapped[float]
    log_largest: Mapped[float]
    answers: Mapped[int] = mapped_column(BigInteger)
    batches: Mapped[int] = mapped_column(BigInteger)
    interval_seconds: Mapped[float]  # recent mean of the time between two batches
    last_at: Mapped[datetime | None]
    alarmed_at: Mapped[datetime | None]
    damaged: Mapped[bool]
    ticket: Mapped[int] = mapped_column(BigInteger)  # fencing token and number of the newest batch
    ticket_until: Mapped[datetime | None]
