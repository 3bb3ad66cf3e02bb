"""The table of releases. A row is written once, in the settling transaction, and never changed."""

from datetime import datetime
from typing import Any

from sqlalchemy import ForeignKey
from sqlalchemy.orm import Mapped, mapped_column

from app.db import Base, JsonObject


class Release(Base):
    __tablename__ = "releases"

    id: Mapped[str] = mapped_column(primary_key=True)
    dataset_id: Mapped[str] = mapped_column(ForeignKey("datasets.id"), index=True)
    job_id: Mapped[str] = mapped_column(ForeignKey("jobs.id"), unique=True)
    public: Mapped[bool]
    created_at: Mapped[datetime]
    body: Mapped[dict[str, Any]] = mapped_column(JsonObject)
    """Method, model, size, design, diagnostics, cost, and posterior if there is one."""
    certificate: Mapped[dict[str, Any]] = mapped_column(JsonObject)  # statement, signature, key_id
    representations: Mapped[dict[str, Any]] = mapped_column(JsonObject)
    """Format to ``{object, length, sha256, media_type}``."""
