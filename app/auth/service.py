"""Rules of API keys.

Only a keyed hash of a secret is stored, rows are sealed, and the last working admin key cannot be revoked.
"""

import hmac
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from app.auth import repository
from app.auth.models import ApiKey
from app.auth.seals import compute_seal, is_sealed
from app.auth.secrets import Secret, generate_secret, parse
from app.context import note_target
from app.db import ReadSession, Write, WriteSession, generate_id, now
from app.errors import InvalidRequest, NotFound, StateConflict, Unauthenticated

USE_NOTED_EVERY: Final = timedelta(minutes=1)
_DECOY: Final = ApiKey(id="", source="key", role="", prefix="", secret_hash="0" * 64, seal="0" * 64)
"""A key that matches no secret. A secret without a candidate is compared with it, so that the work is the same."""


@dataclass(frozen=True, slots=True)
class Keys:
    """API keys under the ``identity_key`` that all API processes share."""

    identity_key: bytes

    def authenticate(self, session: ReadSession, text: str) -> ApiKey:
        """Find the key that the secret belongs to.

        Raises:
            Unauthenticated: the key is malformed, unknown, expired or revoked, or its row has no valid seal. The answer
                is always the same. So is the work, except for a malformed key.
        """
        secret = parse(text)
        if secret is None:
            raise Unauthenticated
        key = self._find_match(repository.find_candidates(session, secret.prefix), secret)
        if key is None or not _usable(key, now()):
            raise Unauthenticated
        return key

    def create(self, tx: WriteSession, name: str, role: str, expires_at: datetime | None = None) -> tuple[ApiKey, str]:
        """Create a key; return it with its secret, which cannot be read again.

        Raises:
            InvalidRequest: at ``/expires_at``, for a time that has passed.
        """
        at = now()
        if expires_at is not None and expires_at <= at:
            raise InvalidRequest.at("/expires_at", "Use a time in the future.")
        key = ApiKey(id=generate_id("key"), name=name, role=role, source="key", created_at=at, expires_at=expires_at)
        secret = self._give_secret(key)
        tx.add(key)
        tx.flush()
        return key, secret

    def rotate(self, tx: WriteSession, key_id: str) -> tuple[ApiKey, str]:
        """Give a key a new secret; the old one ends with this transaction.

        Raises:
            NotFound: for an unknown or revoked key.
            StateConflict: the key has expired, its caller signs in elsewhere, or its row was altered in the database.
        """
        key = _find(tx, key_id)
        if not _usable(key, now()):
            raise StateConflict("This key has expired; create a new key.")
        if key.source != "key":
            raise StateConflict("This caller signs in elsewhere and has no secret here; only API keys can be rotated.")
        if key.prefix is not None and not is_sealed(self.identity_key, key):
            raise StateConflict("This key was altered in the database; revoke it and create a new one.")
        secret = self._give_secret(key)
        tx.flush()
        return key, secret

    def revoke(self, tx: WriteSession, key_id: str) -> None:
        """Revoke a key permanently; its datasets stay.

        Raises:
            NotFound: for an unknown or revoked key.
            StateConflict: for the last admin key that works.
        """
        at = now()
        admins = {key.id for key in repository.lock_admins(tx, at) if is_sealed(self.identity_key, key)}
        key = _find(tx, key_id)
        if admins == {key.id}:
            raise StateConflict("This is the last admin key that works; create another one first.")
        key.revoked_at, key.seal = at, None
        tx.flush()

    def list_unsealed(self, session: ReadSession) -> Sequence[str]:
        """List the ids of unrevoked rows without a valid seal.

        Such a row was altered or added outside the service, or has an old form. It is not accepted.
        """
        return [key.id for key in repository.list_unrevoked(session) if not is_sealed(self.identity_key, key)]

    def _find_match(self, candidates: Sequence[ApiKey], secret: Secret) -> ApiKey | None:
        """Return the candidate with this hash and a valid seal.

        There is at least one comparison, and each takes constant time.
        """
        keyed, match = secret.keyed_hash(self.identity_key), None
        for key in candidates or [_DECOY]:
            stored = key.secret_hash + (key.seal or "")
            if hmac.compare_digest(stored, keyed + compute_seal(self.identity_key, key)):
                match = key
        return match

    def _give_secret(self, key: ApiKey) -> str:
        secret = generate_secret()
        key.prefix, key.secret_hash = secret.prefix, secret.keyed_hash(self.identity_key)
        key.seal = compute_seal(self.identity_key, key)
        return secret.text


def note_use(key: ApiKey, at: datetime) -> Write | None:
    """Return the write that notes the use of ``key`` at ``at``; None if one was noted in the last minute."""
    if key.last_used_at is not None and at - key.last_used_at < USE_NOTED_EVERY:
        return None
    return lambda tx: repository.note_use(tx, key.id, at)


def check_still_valid(tx: WriteSession, caller_id: str, expires_at: datetime | None) -> None:
    """Check that the credential of a long write is still valid.

    The key cannot be revoked before ``tx`` ends.

    Raises:
        Unauthenticated: the credential was revoked or has expired.
    """
    _check_valid(repository.lock_by_id(tx, caller_id), expires_at)


def check_may_read_on(session: ReadSession, caller_id: str, expires_at: datetime | None) -> None:
    """Check that the credential of a long answer is still valid.

    Raises:
        Unauthenticated: the credential was revoked or has expired.
    """
    _check_valid(repository.find_unrevoked(session, caller_id), expires_at)


def _check_valid(key: ApiKey | None, expires_at: datetime | None) -> None:
    at = now()
    if key is None or not _usable(key, at) or (expires_at is not None and expires_at <= at):
        raise Unauthenticated


def check_room(tx: WriteSession, caller_id: str, most: int) -> None:
    """Check that the server may have one more API key.

    Raises:
        StateConflict: there are ``most`` keys already.
    """
    take_turn(tx, caller_id)
    if repository.count(tx) >= most:
        raise StateConflict("This server has its largest number of API keys; revoke a key that is not needed.")


def take_turn(tx: WriteSession, caller_id: str) -> None:
    """Lock the caller's row until ``tx`` ends, so that counts cannot race."""
    repository.lock_row(tx, caller_id)


def describe_unknown(session: ReadSession, key_ids: Sequence[str]) -> frozenset[str]:
    """Return the ids that belong to no key."""
    return frozenset(key_ids) - repository.filter_existing(session, key_ids)


def _find(tx: WriteSession, key_id: str) -> ApiKey:
    key = repository.lock_by_id(tx, key_id)
    if key is None:
        raise NotFound
    note_target(key.id)
    return key


def _usable(key: ApiKey, at: datetime) -> bool:
    return key.revoked_at is None and (key.expires_at is None or key.expires_at > at)
