"""API keys: queries. A key that was revoked is gone for all of them but :func:`filter_existing`."""

from collections.abc import Iterable, Sequence
from datetime import datetime

from sqlalchemy import and_, func, or_, select, update

from app.auth.models import ApiKey
from app.db import ReadSession, WriteSession


def candidates(session: ReadSession, prefix: str) -> Sequence[ApiKey]:
    """Keys of this prefix: few, mostly one."""
    return session.scalars(select(ApiKey).where(ApiKey.source == "key", ApiKey.prefix == prefix)).all()


def by_identity(session: ReadSession, digest: str) -> ApiKey | None:
    """The row of a caller who signs in elsewhere, also one that was revoked."""
    return session.scalar(select(ApiKey).where(ApiKey.source == "oidc", ApiKey.secret_hash == digest))


def note_role(tx: WriteSession, key_id: str, role: str) -> None:
    """Keep the role that a caller came with last, for those who look through the list."""
    tx.execute(update(ApiKey).where(ApiKey.id == key_id).values(role=role))


def note_use(tx: WriteSession, key_id: str, at: datetime) -> None:
    earlier = or_(ApiKey.last_used_at.is_(None), ApiKey.last_used_at < at)
    tx.execute(update(ApiKey).where(ApiKey.id == key_id, earlier).values(last_used_at=at))


def by_id(tx: WriteSession, key_id: str) -> ApiKey | None:
    """The key's row, locked for the transaction."""
    query = select(ApiKey).where(ApiKey.id == key_id, ApiKey.revoked_at.is_(None)).with_for_update()
    return tx.scalar(query)


def unrevoked(session: ReadSession, key_id: str) -> ApiKey | None:
    """The key's row as it is now, however often this session has read it."""
    query = select(ApiKey).where(ApiKey.id == key_id, ApiKey.revoked_at.is_(None))
    return session.scalar(query.execution_options(populate_existing=True))


def newest(session: ReadSession, limit: int, after: str | None) -> Sequence[ApiKey]:
    query = select(ApiKey).where(ApiKey.revoked_at.is_(None)).order_by(ApiKey.id.desc()).limit(limit)
    return session.scalars(query if after is None else query.where(ApiKey.id < after)).all()


def admins(tx: WriteSession, at: datetime) -> Sequence[ApiKey]:
    """All rows of admin keys that have not ended, locked: two of them cannot revoke each other at once."""
    lasting = or_(ApiKey.expires_at.is_(None), ApiKey.expires_at > at)
    own = and_(ApiKey.source == "key", ApiKey.role == "admin", ApiKey.revoked_at.is_(None), lasting)
    query = select(ApiKey).where(own)
    return tx.scalars(query.order_by(ApiKey.id).with_for_update()).all()


def all_unrevoked(session: ReadSession) -> Sequence[ApiKey]:
    return session.scalars(select(ApiKey).where(ApiKey.revoked_at.is_(None)).order_by(ApiKey.id)).all()


def hold(tx: WriteSession, key_id: str) -> None:
    """Lock the caller's row against others who do the same; rows that refer to it may still be added."""
    tx.execute(select(ApiKey.id).where(ApiKey.id == key_id).with_for_update(key_share=True))


def count(session: ReadSession) -> int:
    """Keys that were not revoked."""
    return session.scalars(select(func.count()).where(ApiKey.source == "key", ApiKey.revoked_at.is_(None))).one()


def filter_existing(session: ReadSession, key_ids: Iterable[str]) -> frozenset[str]:
    """Those of the ids that belong to a key, also to one that was revoked."""
    return frozenset(session.scalars(select(ApiKey.id).where(ApiKey.id.in_(tuple(key_ids)))))
