"""Ed25519 signatures over the RFC 8785 form of a JSON statement."""

import base64
import hashlib
from collections.abc import Iterable, Mapping
from typing import Any, Literal

import rfc8785
from nacl.exceptions import CryptoError
from nacl.signing import SigningKey, VerifyKey


def key_id(public_key: bytes) -> str:
    """``ed25519:`` and the first 16 hexadecimal digits of the public key's SHA-256."""
    return "ed25519:" + hashlib.sha256(public_key).hexdigest()[:16]


Chain = Literal["checkpoint", "audit"]
Place = tuple[Chain, int]
"""Where in which chain a document stands."""
Cutoff = Mapping[Chain, int]
"""The last place in each chain that a key signed before it retired."""


class KeyRing:
    """Public keys that signed documents may name: the one in use and those that it replaced.

    Args:
        public_keys: base64 text of Ed25519 public keys.
        until: by public key, how far retired ones are believed; without a limit where nothing is said.

    Raises:
        ValueError: for text that is not base64.
    """

    def __init__(self, public_keys: Iterable[str], until: Mapping[str, Cutoff] | None = None) -> None:
        self._by_id = {key_id(base64.b64decode(public, validate=True)): public for public in public_keys}
        self._until = dict(until or {})

    @property
    def public_keys(self) -> tuple[str, ...]:
        return tuple(self._by_id.values())

    def knows(self, named: str) -> bool:
        """Whether the key of this id is in the ring: one that is not is newer than this process, or nobody's."""
        return named in self._by_id

    def verify(self, document: Mapping[str, Any], place: Place | None = None) -> bool:
        """Whether ``document`` is signed by the key of this ring that it names; total, whatever it is given.

        ``place``: where it stands, if that is in a chain; a retired key is believed up to where it retired.
        """
        named = document.get("key_id")
        public = self._by_id.get(named) if isinstance(named, str) else None
        return public is not None and self._is_trusted(public, place) and verify(document, public)

    def _is_trusted(self, public: str, place: Place | None) -> bool:
        if place is None or public not in self._until:
            return True
        chain, at = place
        return at <= self._until[public].get(chain, 0)


class Signer:
    """Signs with one Ed25519 key; ``ring`` verifies what it and its predecessors signed.

    Args:
        seed: the 32 secret bytes.
        retired: public keys (base64) that earlier documents are signed with.
        until: how far each of these is believed; what is said of the key in use (by a rotation that was cut short)
            does not hold yet.
    """

    def __init__(self, seed: bytes, retired: Iterable[str] = (), until: Mapping[str, Cutoff] | None = None) -> None:
        self._key = SigningKey(seed)
        public = bytes(self._key.verify_key)
        self.public_key = base64.b64encode(public).decode("ascii")
        self.key_id = key_id(public)
        ended = {key: cutoff for key, cutoff in (until or {}).items() if key != self.public_key}
        self.ring = KeyRing((self.public_key, *retired), ended)

    def sign(self, statement: Mapping[str, Any]) -> dict[str, Any]:
        """``{"statement", "signature", "key_id"}``, the signature in base64.

        Raises:
            rfc8785.CanonicalizationError: for NaN, infinities, integers beyond 2**53 and what JSON cannot say.
        """
        plain = dict(statement)
        signature = self._key.sign(rfc8785.dumps(plain)).signature
        return {
            "statement": plain,
            "signature": base64.b64encode(signature).decode("ascii"),
            "key_id": self.key_id,
        }


def verify(document: Mapping[str, Any], public_key: str) -> bool:
    """Whether ``document`` is a statement signed by the key ``public_key`` (base64); total, whatever it is given."""
    try:
        public = base64.b64decode(public_key, validate=True)
        signature = base64.b64decode(document["signature"], validate=True)
        VerifyKey(public).verify(rfc8785.dumps(document["statement"]), signature)
    except (KeyError, TypeError, ValueError, RecursionError, CryptoError):
        return False
    return document.get("key_id") == key_id(public)
