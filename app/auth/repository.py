"""API keys: queries. A key that was revoked is gone for all of them but :func:`known`."""

from collections.abc import Iterable, Sequence
from datetime import datetime

from sqlalchemy import or_, select

from app.auth.models import ApiKey
from app.db import ReadSession, WriteSession


def by_hash(session: ReadSession, secret_hash: str) -> ApiKey | None:
    return session.scalar(select(ApiKey).where(ApiKey.secret_hash == secret_hash))


def by_id(tx: WriteSession, key_id: str) -> ApiKey | None:
    """The key's row, locked for the transaction."""
    query = select(ApiKey).where(ApiKey.id == key_id, ApiKey.revoked_at.is_(None)).with_for_update()
    return tx.scalar(query)


def newest(session: ReadSession, limit: int, after: str | None) -> Sequence[ApiKey]:
    query = select(ApiKey).where(ApiKey.revoked_at.is_(None)).order_by(ApiKey.id.desc()).limit(limit)
    return session.scalars(query if after is None else query.where(ApiKey.id < after)).all()


def usable_admins(tx: WriteSession, at: datetime) -> Sequence[ApiKey]:
    """All admin keys that work, locked: two of them cannot revoke each other at once."""
    lasting = or_(ApiKey.expires_at.is_(None), ApiKey.expires_at > at)
    query = select(ApiKey).where(ApiKey.role == "admin", ApiKey.revoked_at.is_(None), lasting)
    return tx.scalars(query.order_by(ApiKey.id).with_for_update()).all()


def known(session: ReadSession, key_ids: Iterable[str]) -> frozenset[str]:
    """Those of the ids that belong to a key, also to one that was revoked."""
    return frozenset(session.scalars(select(ApiKey.id).where(ApiKey.id.in_(tuple(key_ids)))))
