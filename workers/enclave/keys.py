"""What the opening key opens, and the fingerprints that only its holder can compute."""

import hashlib
import hmac

from nacl.exceptions import CryptoError
from nacl.public import PrivateKey, SealedBox

from app.vault.envelope import CONTEXT_BYTES, KEY_BYTES, dataset_context, digest_context, key_context
from app.vault.errors import VaultError


class OpeningKey:
    """The worker's X25519 secret.

    Args:
        secret: its 32 bytes.
    """

    def __init__(self, secret: bytes) -> None:
        self._box = SealedBox(PrivateKey(secret))
        self._fingerprints = _derived(secret, b"fingerprints")
        self._attempts = _derived(secret, b"attempts")

    def upload_key(self, box: bytes, upload_id: str) -> bytes:
        """The key of a sealed upload.

        Raises:
            VaultError: for an altered box, one sealed to another key, or one of another upload or purpose.
        """
        return self._open(box, key_context("upload", upload_id))

    def digest(self, box: bytes, content_id: str) -> bytes:
        """The SHA-256 digest that was announced of a content; raises as :meth:`upload_key`."""
        return self._open(box, digest_context(content_id))

    def dataset_key(self, box: bytes, dataset_id: str, *, public: bool = False) -> bytes:
        """The key of a dataset; raises as :meth:`upload_key`, also for a private one that is said to be public."""
        return self._open(box, dataset_context(dataset_id, public=public))

    def fingerprint_key(self, owner_id: str) -> bytes:
        """The key of one owner's fingerprints, so that equal bytes of two owners have unrelated ones."""
        return hmac.digest(self._fingerprints, owner_id.encode(), "sha256")

    def attempt_key(self, job_id: str, token: int) -> bytes:
        """The key of what the workers tell each other in one attempt of a job."""
        return hmac.digest(self._attempts, f"{job_id}|{token}".encode(), "sha256")

    def _open(self, box: bytes, context: bytes) -> bytes:
        try:
            content = bytes(self._box.decrypt(box))
        except (CryptoError, ValueError):
            raise VaultError from None
        if len(content) != KEY_BYTES + CONTEXT_BYTES or not hmac.compare_digest(content[KEY_BYTES:], context):
            raise VaultError
        return content[:KEY_BYTES]


def _derived(secret: bytes, purpose: bytes) -> bytes:
    return hashlib.blake2b(purpose, key=secret, digest_size=32, person=b"corevault").digest()


def fingerprint(owner_key: bytes, sha256: bytes) -> str:
    """64 hexadecimal digits that name the bytes of a content to whoever holds the owner's fingerprint key."""
    return hmac.new(owner_key, sha256, "sha256").hexdigest()
