"""Ed25519 signatures over the RFC 8785 form of a JSON statement."""

import base64
import hashlib
from collections.abc import Mapping
from typing import Any

import rfc8785
from nacl.exceptions import CryptoError
from nacl.signing import SigningKey, VerifyKey


def key_id(public_key: bytes) -> str:
    """``ed25519:`` and the first 16 hexadecimal digits of the public key's SHA-256."""
    return "ed25519:" + hashlib.sha256(public_key).hexdigest()[:16]


class Signer:
    """Signs with one Ed25519 key.

    Args:
        seed: the 32 secret bytes.
    """

    def __init__(self, seed: bytes) -> None:
        self._key = SigningKey(seed)
        public = bytes(self._key.verify_key)
        self.public_key = base64.b64encode(public).decode("ascii")
        self.key_id = key_id(public)

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
