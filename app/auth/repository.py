"""Queries of API keys, and of callers who sign in elsewhere.

Four functions also read revoked keys: :func:`find_candidates`, :func:`find_by_identity`, :func:`read_names` and
:func:`filter_existing`.
"""

from collections.abc import Iterable, Sequence
from datetime import datetime

from sqlalchemy import and_, func, or_, select, update

from app.auth.models import ApiKey
from app.db import ReadSession, WriteSession


def find_candidates(session: ReadSession, prefix: str) -> Sequence[ApiKey]:
    """Find the keys with this prefix, usually one."""
    return session.scalars(select(ApiKey).where(ApiKey.source == "key", ApiKey.prefix == prefix)).all()


def find_by_identity(session: ReadSession, digest: str) -> ApiKey | None:
    """Find the row of a caller who signs in elsewhere, even a revoked one."""
    return session.scalar(select(ApiKey).where(ApiKey.source == "oidc", ApiKey.secret_hash == digest))


def note_role(tx: WriteSession, key_id: str, role: str) -> None:
    """Store the role of a caller's last token, for lists of keys."""
    tx.execute(update(ApiKey).where(ApiKey.id == key_id).values(role=role))


def note_use(tx: WriteSession, key_id: str, at: datetime) -> None:
    """Store the time of a key's use, unless a later one is stored."""
    earlier = or_(ApiKey.last_used_at.is_(None), ApiKey.last_used_at < at)
    tx.execute(update(ApiKey).where(ApiKey.id == key_id, earlier).values(last_used_at=at))


def lock_by_id(tx: WriteSession, key_id: str) -> ApiKey | None:
    """Find an unrevoked key and lock its row for the transaction."""
    query = select(ApiKey).where(ApiKey.id == key_id, ApiKey.revoked_at.is_(None)).with_for_update()
    return tx.scalar(query)


def find_unrevoked(session: ReadSession, key_id: str) -> ApiKey | None:
    """Read an unrevoked key's row again, even if this session has read it before."""
    query = select(ApiKey).where(ApiKey.id == key_id, ApiKey.revoked_at.is_(None))
    return session.scalar(query.execution_options(populate_existing=True))


def list_newest(session: ReadSession, limit: int, after: str | None) -> Sequence[ApiKey]:
    """List unrevoked keys below the id ``after``, newest first."""
    query = select(ApiKey).where(ApiKey.revoked_at.is_(None)).order_by(ApiKey.id.desc()).limit(limit)
    return session.scalars(query if after is None else query.where(ApiKey.id < after)).all()


def lock_admins(tx: WriteSession, at: datetime) -> Sequence[ApiKey]:
    """Lock all working admin keys.

    So two of them cannot revoke each other at once.
    """
    lasting = or_(ApiKey.expires_at.is_(None), ApiKey.expires_at > at)
    own = and_(ApiKey.source == "key", ApiKey.role == "admin", ApiKey.revoked_at.is_(None), lasting)
    query = select(ApiKey).where(own)
    return tx.scalars(query.order_by(ApiKey.id).with_for_update()).all()


def list_unrevoked(session: ReadSession) -> Sequence[ApiKey]:
    """List all unrevoked keys, oldest first."""
    return session.scalars(select(ApiKey).where(ApiKey.revoked_at.is_(None)).order_by(ApiKey.id)).all()


def lock_row(tx: WriteSession, key_id: str) -> None:
    """Lock the caller's row against other calls of this function.

    Rows that refer to it may still be added.
    """
    tx.execute(select(ApiKey.id).where(ApiKey.id == key_id).with_for_update(key_share=True))


def count(session: ReadSession) -> int:
    """Count the API keys that were not revoked, without callers who sign in elsewhere."""
    return session.scalars(select(func.count()).where(ApiKey.source == "key", ApiKey.revoked_at.is_(None))).one()


def read_names(session: ReadSession, key_ids: Iterable[str]) -> dict[str, str]:
    """Map the ids of keys to their names, also of revoked keys."""
    rows = session.execute(select(ApiKey.id, ApiKey.name).where(ApiKey.id.in_(tuple(key_ids))))
    return {row.id: row.name for row in rows}


def filter_existing(session: ReadSession, key_ids: Iterable[str]) -> frozenset[str]:
    """Return the ids that belong to a key, even to a revoked one."""
    return frozenset(session.scalars(select(ApiKey.id).where(ApiKey.id.in_(tuple(key_ids)))))
