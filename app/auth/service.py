"""Rules of API keys: only a keyed hash of a secret is kept, rows are sealed, and someone can always administer."""

import hmac
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from app.auth import repository
from app.auth.models import ApiKey
from app.auth.seals import is_sealed, seal_of
from app.auth.secrets import Secret, new_secret, parse
from app.context import note_target
from app.db import ReadSession, Write, WriteSession, new_id, now
from app.errors import InvalidRequest, NotFound, StateConflict, Unauthenticated

USE_NOTED_EVERY: Final = timedelta(minutes=1)
_DECOY: Final = ApiKey(id="", source="key", role="", prefix="", secret_hash="0" * 64, seal="0" * 64)
"""No secret has this hash; it is compared with where there is no key, so that both cost the same."""


@dataclass(frozen=True, slots=True)
class Keys:
    """Tells whose secret it is; ``identity_key`` is the one that all API processes share."""

    identity_key: bytes

    def authenticate(self, session: ReadSession, text: str) -> ApiKey:
        """The key that the secret belongs to.

        Raises:
            Unauthenticated: for an unknown, expired or revoked key and for a row that somebody else wrote, all alike,
                after the same work.
        """
        secret = parse(text)
        if secret is None:
            raise Unauthenticated
        key = self._matching(repository.candidates(session, secret.prefix), secret)
        if key is None or not _usable(key, now()):
            raise Unauthenticated
        return key

    def create(self, tx: WriteSession, name: str, role: str, expires_at: datetime | None = None) -> tuple[ApiKey, str]:
        """A new key and its secret, which nobody can read again.

        Raises:
            InvalidRequest: at ``/expires_at``, for a time that has passed.
        """
        at = now()
        if expires_at is not None and expires_at <= at:
            raise InvalidRequest.at("/expires_at", "Use a time in the future.")
        key = ApiKey(id=new_id("key"), name=name, role=role, source="key", created_at=at, expires_at=expires_at)
        secret = self._give_secret(key)
        tx.add(key)
        tx.flush()
        return key, secret

    def rotate(self, tx: WriteSession, key_id: str) -> tuple[ApiKey, str]:
        """A new secret for the same key; the old one ends with this transaction.

        Raises:
            NotFound: for an unknown or revoked key.
            StateConflict: for an expired one, which a new secret would not revive, for one that has no secret, and for
                a row that was altered in the database.
        """
        key = _find(tx, key_id)
        if not _usable(key, now()):
            raise StateConflict("This key has expired; create a new one.")
        if key.source != "key":
            raise StateConflict("Its holder signs in elsewhere; there is no secret here to rotate.")
        if key.prefix is not None and not is_sealed(self.identity_key, key):
            raise StateConflict("This key was altered in the database; revoke it and create a new one.")
        secret = self._give_secret(key)
        tx.flush()
        return key, secret

    def revoke(self, tx: WriteSession, key_id: str) -> None:
        """End a key for good; what it owns stays.

        Raises:
            NotFound: for an unknown or revoked key.
            StateConflict: for the last admin key that works.
        """
        at = now()
        admins = {key.id for key in repository.admins(tx, at) if is_sealed(self.identity_key, key)}
        key = _find(tx, key_id)
        if admins == {key.id}:
            raise StateConflict("This is the last admin key that works; create another one first.")
        key.revoked_at, key.seal = at, None
        tx.flush()

    def unsealed(self, session: ReadSession) -> Sequence[str]:
        """Ids of rows that were not revoked and yet belong to nobody: altered, added by others, or of an old form."""
        return [key.id for key in repository.all_unrevoked(session) if not is_sealed(self.identity_key, key)]

    def _matching(self, candidates: Sequence[ApiKey], secret: Secret) -> ApiKey | None:
        """The candidate whose hash and seal these are; at least one comparison, in constant time."""
        keyed, found = secret.keyed_hash(self.identity_key), None
        for key in candidates or [_DECOY]:
            stored = key.secret_hash + (key.seal or "")
            if hmac.compare_digest(stored, keyed + seal_of(self.identity_key, key)):
                found = key
        return found

    def _give_secret(self, key: ApiKey) -> str:
        secret = new_secret()
        key.prefix, key.secret_hash = secret.prefix, secret.keyed_hash(self.identity_key)
        key.seal = seal_of(self.identity_key, key)
        return secret.text


def note_use(key: ApiKey, at: datetime) -> Write | None:
    """What is to be written about a use of ``key`` at ``at``, if anything."""
    if key.last_used_at is not None and at - key.last_used_at < USE_NOTED_EVERY:
        return None
    return lambda tx: repository.note_use(tx, key.id, at)


def check_still_valid(tx: WriteSession, caller_id: str, expires_at: datetime | None) -> None:
    """For writes that take so long that their credential may have been revoked or have expired on the way.

    Until ``tx`` ends, nobody revokes it.

    Raises:
        Unauthenticated: it was, or has.
    """
    _check_valid(repository.by_id(tx, caller_id), expires_at)


def check_may_read_on(session: ReadSession, caller_id: str, expires_at: datetime | None) -> None:
    """The same for answers that go on for long.

    Raises:
        Unauthenticated: the credential was revoked or has expired.
    """
    _check_valid(repository.unrevoked(session, caller_id), expires_at)


def _check_valid(key: ApiKey | None, expires_at: datetime | None) -> None:
    at = now()
    if key is None or not _usable(key, at) or (expires_at is not None and expires_at <= at):
        raise Unauthenticated


def check_room(tx: WriteSession, caller_id: str, most: int) -> None:
    """
    Raises:
        StateConflict: there are as many keys as this server keeps.
    """
    take_turn(tx, caller_id)
    if repository.count(tx) >= most:
        raise StateConflict("There are as many API keys as this server keeps; revoke one that is not needed.")


def take_turn(tx: WriteSession, caller_id: str) -> None:
    """Until ``tx`` ends, others that count what this caller has wait: two at once cannot both be the last to fit."""
    repository.hold(tx, caller_id)


def describe_unknown(session: ReadSession, key_ids: Sequence[str]) -> frozenset[str]:
    """Those of the ids that belong to no key (for datasets that are shared with keys)."""
    return frozenset(key_ids) - repository.filter_existing(session, key_ids)


def _find(tx: WriteSession, key_id: str) -> ApiKey:
    key = repository.by_id(tx, key_id)
    if key is None:
        raise NotFound
    note_target(key.id)
    return key


def _usable(key: ApiKey, at: datetime) -> bool:
    return key.revoked_at is None and (key.expires_at is None or key.expires_at > at)
