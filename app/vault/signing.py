"""Ed25519 signatures over the RFC 8785 form of a JSON statement."""

import base64
import hashlib
from collections.abc import Iterable, Mapping
from typing import Any, Literal, NamedTuple

import rfc8785
from nacl.exceptions import CryptoError
from nacl.signing import SigningKey, VerifyKey


def compute_key_id(public_key: bytes) -> str:
    """Return ``ed25519:`` and the first 16 hexadecimal digits of the public key's SHA-256."""
    return "ed25519:" + hashlib.sha256(public_key).hexdigest()[:16]


Chain = Literal["checkpoint", "audit"]
Place = tuple[Chain, int]
"""A chain, and the position of a document in it."""
Cutoff = Mapping[Chain, int]
"""The last position in each chain that a key signed before it was retired."""


class DetachedSignature(NamedTuple):
    """A signature that is stored without its statement: base64, and the id of the key."""

    signature: str
    key_id: str


class KeyRing:
    """The trusted public keys: the key in use and the retired ones.

    Args:
        public_keys: base64 text of Ed25519 public keys.
        until: the cutoffs of retired keys, by public key. A key without a cutoff is trusted for every position.

    Raises:
        ValueError: a key is not base64.
    """

    def __init__(self, public_keys: Iterable[str], until: Mapping[str, Cutoff] | None = None) -> None:
        self._by_id = {compute_key_id(base64.b64decode(public, validate=True)): public for public in public_keys}
        self._until = dict(until or {})

    @property
    def public_keys(self) -> tuple[str, ...]:
        return tuple(self._by_id.values())

    @property
    def by_id(self) -> Mapping[str, str]:
        """The public keys by their ids."""
        return self._by_id

    def find_end(self, public_key: str, chain: Chain) -> int | None:
        """The last position in ``chain`` for which the key is trusted; None if there is no end."""
        return self._until[public_key].get(chain, 0) if public_key in self._until else None

    def knows(self, named: str) -> bool:
        """Whether the key with this id is in the ring.

        If it is not, the key was made after this process started, or it does not belong to this installation.
        """
        return named in self._by_id

    def verify(self, document: Mapping[str, Any], place: Place | None = None) -> bool:
        """Whether ``document`` names a trusted key and has a valid signature by it; never raises.

        If the document is part of a chain, pass its ``place``. Then a retired key is trusted only up to its cutoff.
        """
        named = document.get("key_id")
        public = self._by_id.get(named) if isinstance(named, str) else None
        return public is not None and self._is_trusted(public, place) and verify(document, public)

    def verify_detached(self, statement: Mapping[str, Any], signature: tuple[Any, Any], place: Place) -> bool:
        """As :meth:`verify`, for signature (base64) and key id without their statement."""
        return self.verify({"statement": statement, "signature": signature[0], "key_id": signature[1]}, place)

    def _is_trusted(self, public: str, place: Place | None) -> bool:
        if place is None or public not in self._until:
            return True
        chain, at = place
        return at <= self._until[public].get(chain, 0)


class Signer:
    """Signs with one Ed25519 key; ``ring`` also verifies signatures of retired keys.

    Args:
        seed: the 32 secret bytes.
        retired: public keys (base64) that signed earlier documents.
        until: the cutoffs of the retired keys. A cutoff of the present key is ignored: an interrupted rotation has
            left it.
    """

    def __init__(self, seed: bytes, retired: Iterable[str] = (), until: Mapping[str, Cutoff] | None = None) -> None:
        self._key = SigningKey(seed)
        public = bytes(self._key.verify_key)
        self.public_key = base64.b64encode(public).decode("ascii")
        self.key_id = compute_key_id(public)
        ended = {key: cutoff for key, cutoff in (until or {}).items() if key != self.public_key}
        self.ring = KeyRing((self.public_key, *retired), ended)

    def sign(self, statement: Mapping[str, Any]) -> dict[str, Any]:
        """Return ``{"statement", "signature", "key_id"}``, with the signature in base64.

        Raises:
            rfc8785.CanonicalizationError: the statement contains NaN, an infinity, an integer above 2**53, or another
                value that JSON cannot represent.
        """
        plain = dict(statement)
        signature = self._key.sign(rfc8785.dumps(plain)).signature
        return {
            "statement": plain,
            "signature": base64.b64encode(signature).decode("ascii"),
            "key_id": self.key_id,
        }

    def sign_detached(self, statement: Mapping[str, Any]) -> DetachedSignature:
        """Sign a statement that the verifier can rebuild; :meth:`KeyRing.verify_detached` verifies it.

        Raises:
            rfc8785.CanonicalizationError: as :meth:`sign`.
        """
        signed = self.sign(statement)
        return DetachedSignature(signed["signature"], signed["key_id"])


def verify(document: Mapping[str, Any], public_key: str) -> bool:
    """Whether ``document`` has a valid signature by ``public_key`` (base64); never raises."""
    try:
        public = base64.b64decode(public_key, validate=True)
        signature = base64.b64decode(document["signature"], validate=True)
        VerifyKey(public).verify(rfc8785.dumps(document["statement"]), signature)
    except (KeyError, TypeError, ValueError, RecursionError, CryptoError):
        return False
    return document.get("key_id") == compute_key_id(public)
