"""The tables of callers and their sign-ins. Of a secret, only a keyed hash is stored."""

from datetime import datetime

from sqlalchemy import ForeignKey
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


class SignIn(Base):
    """A sign-in at the dashboard: a session of one key. Signing out deletes its row."""

    __tablename__ = "sign_ins"

    id: Mapped[str] = mapped_column(primary_key=True)
    key_id: Mapped[str] = mapped_column(ForeignKey("api_keys.id"), index=True)
    token_hash: Mapped[str]  # keyed, see app.auth.sign_ins
    created_at: Mapped[datetime]
    last_used_at: Mapped[datetime]
    expires_at: Mapped[datetime] = mapped_column(index=True)
