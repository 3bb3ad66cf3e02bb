"""A cache of the provider's public keys.

Keys are fetched again after an hour, and for an unknown key id at most once a minute. If the provider does not answer,
the keys stay valid for a day. After that no token is accepted, because a key may have been withdrawn.
"""

import threading
import time
from collections.abc import Mapping
from typing import Any, Final

import structlog
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey
from jwt import PyJWK
from jwt.exceptions import PyJWTError

from app.errors import DependencyUnavailable
from app.oidc.documents import NO_ANSWER, Documents

ALGORITHMS: Final = frozenset({"RS256", "ES256", "EdDSA"})
FRESH_SECONDS: Final = 3600.0
LONGEST_SECONDS: Final = 24 * 3600.0
PAUSE_SECONDS: Final = 60.0
FIRST_PAUSE_SECONDS: Final = 1.0
_LEAST_RSA_BITS: Final = 2048
DISCOVERY: Final = "/.well-known/openid-configuration"


class ProviderKeys:
    """Signing keys by id, for several threads.

    While one thread fetches keys, the others use the cached ones.
    """

    def __init__(self, documents: Documents, issuer: str, jwks_url: str | None = None) -> None:
        """Without ``jwks_url``, the issuer's discovery document states it."""
        self._documents = documents
        self._issuer = issuer
        self._jwks_url = jwks_url
        self._keys: Mapping[str, PyJWK] | None = None
        self._fetched_at = self._tried_at = -float("inf")
        self._fetching = threading.Lock()

    def find(self, key_id: str) -> PyJWK | None:
        """Find the key with this id; None if the provider does not publish it.

        Raises:
            DependencyUnavailable: the provider has not answered for a day, or never.
        """
        at = time.monotonic()
        keys = self._keys
        stale = keys is None or key_id not in keys or at - self._fetched_at > FRESH_SECONDS
        if stale and at - self._tried_at >= (FIRST_PAUSE_SECONDS if keys is None else PAUSE_SECONDS):
            self._refresh(wait=keys is None)
        if self._keys is None or at - self._fetched_at > LONGEST_SECONDS:
            raise DependencyUnavailable(NO_ANSWER)
        return self._keys.get(key_id)

    def _refresh(self, *, wait: bool) -> None:
        """Fetch the keys in one thread. If that fails, the cached keys stay."""
        if not self._fetching.acquire(blocking=wait):
            return
        try:
            if wait and self._keys is not None:  # another thread was faster
                return
            self._keys = self._fetch()
            self._fetched_at = time.monotonic()
        except DependencyUnavailable:
            structlog.get_logger().warning("keys of the sign-in service not fetched")
        finally:
            self._tried_at = time.monotonic()
            self._fetching.release()

    def _fetch(self) -> Mapping[str, PyJWK]:
        listed = self._documents.fetch(self._jwks_url or self._discover()).get("keys")
        if not isinstance(listed, list):
            raise DependencyUnavailable
        keys = ((each.get("kid"), _read_signing_key(each)) for each in listed if isinstance(each, dict))
        return {name: key for name, key in keys if isinstance(name, str) and key is not None}

    def _discover(self) -> str:
        document = self._documents.fetch(self._issuer.rstrip("/") + DISCOVERY)
        if document.get("issuer") != self._issuer:
            raise DependencyUnavailable
        return str(document.get("jwks_uri"))


def _read_signing_key(described: dict[str, Any]) -> PyJWK | None:
    """Read a key for one of :data:`ALGORITHMS`; None for any other key."""
    allowed = {"alg": (None, *ALGORITHMS), "use": ("sig",), "kty": ("RSA", "EC", "OKP")}
    stated = {"use": "sig"} | described
    if not all(stated.get(name) in values for name, values in allowed.items()):
        return None
    try:
        key = PyJWK(described)
    except PyJWTError:
        return None  # a provider may list keys that the library does not support
    weak = isinstance(key.key, RSAPublicKey) and key.key.key_size < _LEAST_RSA_BITS
    return None if weak or key.algorithm_name not in ALGORITHMS else key
