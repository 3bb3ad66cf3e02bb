"""Callers at rest: of a secret only a keyed hash is kept."""

from datetime import datetime

from sqlalchemy.orm import Mapped, mapped_column

from app.db import Base


class ApiKey(Base):
    """An API key, or (``source`` is ``oidc``) someone who signs in elsewhere and gets the same kind of id."""

    __tablename__ = "api_keys"

    id: Mapped[str] = mapped_column(primary_key=True)
    name: Mapped[str]
    role: Mapped[str]
    source: Mapped[str] = mapped_column(default="key")  # key | oidc
    prefix: Mapped[str | None] = mapped_column(index=True)  # None: oidc, or only a plain hash is kept
    secret_hash: Mapped[str] = mapped_column(unique=True)  # of the secret, or of issuer and subject
    seal: Mapped[str | None]  # see app.auth.seals; None: revoked, or of no use
    created_at: Mapped[datetime]
    expires_at: Mapped[datetime | None]
    revoked_at: Mapped[datetime | None]
    last_used_at: Mapped[datetime | None]
