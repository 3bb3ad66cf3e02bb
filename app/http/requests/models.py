"""The table of answers that are recorded for idempotency keys."""

from datetime import datetime
from typing import Any

from sqlalchemy.orm import Mapped, mapped_column

from app.db import Base


class IdempotentAnswer(Base):
    __tablename__ = "idempotent_answers"

    caller_id: Mapped[str] = mapped_column(primary_key=True)
    route: Mapped[str] = mapped_column(primary_key=True)
    key: Mapped[str] = mapped_column(primary_key=True)
    body_hash: Mapped[str]
    status: Mapped[int]
    headers: Mapped[dict[str, Any]]
    body: Mapped[dict[str, Any]]
    created_at: Mapped[datetime]
    expires_at: Mapped[datetime | None]
