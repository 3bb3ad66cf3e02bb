"""Queries of recorded answers."""

from datetime import datetime

from sqlalchemy import delete

from app.db import WriteSession
from app.http.requests.models import IdempotentAnswer


def find(tx: WriteSession, caller_id: str, route: str, key: str) -> IdempotentAnswer | None:
    return tx.get(IdempotentAnswer, (caller_id, route, key))


def forget_expired(tx: WriteSession, at: datetime) -> None:
    tx.execute(delete(IdempotentAnswer).where(IdempotentAnswer.expires_at < at))
