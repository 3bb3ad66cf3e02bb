"""The table of callers. Of a secret, only a keyed hash is stored."""

from datetime import datetime

from sqlalchemy.orm import Mapped, mapped_column

from app.db import Base


class ApiKey(Base):
    """An API key, or a caller of the sign-in service (``source`` is ``oidc``)."""

    __tablename__ = "api_keys"

    id: Mapped[str] = mapped_column(primary_key=True)
    name: Mapped[str]
    role: Mapped[str]
    source: Mapped[str] = mapped_column(default="key")  # key | oidc
    prefix: Mapped[str | None] = mapped_column(index=True)  # None: oidc, or only a plain hash is stored
    secret_hash: Mapped[str] = mapped_column(unique=True)  # of the secret, or of issuer and subject
    seal: Mapped[str | None]  # see app.auth.seals; None: revoked, or not accepted
    created_at: Mapped[datetime]
    expires_at: Mapped[datetime | None]
    revoked_at: Mapped[datetime | None]
    last_used_at: Mapped[datetime | None]
