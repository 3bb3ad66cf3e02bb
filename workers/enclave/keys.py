"""The worker's opening key: opens boxes, and derives the keys of fingerprints and attempts."""

import hmac
from collections.abc import Iterable

from nacl.exceptions import CryptoError
from nacl.public import PrivateKey, SealedBox

from app.vault.envelope import (
    CONTEXT_BYTES,
    KEY_BYTES,
    derive_key,
    make_dataset_context,
    make_digest_context,
    make_upload_context,
)
from app.vault.errors import VaultError


class OpeningKey:
    """The worker's X25519 secret.

    Args:
        secret: its 32 bytes.
        retired: its predecessors, which open boxes from before a rotation.
        fingerprints: the secret of fingerprints, which no rotation changes; by default derived from the key.
    """

    def __init__(self, secret: bytes, retired: Iterable[bytes] = (), fingerprints: bytes | None = None) -> None:
        self._boxes = [SealedBox(PrivateKey(each)) for each in (secret, *retired)]
        self._fingerprints = fingerprints or derive_key(secret, b"fingerprints")
        self._attempts = derive_key(secret, b"attempts")

    def upload_key(self, box: bytes, upload_id: str) -> bytes:
        """Open the box with the key of an upload.

        Raises:
            VaultError: for an altered box, a box sealed to another key, or the box of another upload or purpose.
        """
        return self._open(box, make_upload_context(upload_id))

    def digest(self, box: bytes, content_id: str) -> bytes:
        """Open the box with the announced SHA-256 digest of a content; raises as :meth:`upload_key`."""
        return self._open(box, make_digest_context(content_id))

    def dataset_key(self, box: bytes, dataset_id: str, *, public: bool = False) -> bytes:
        """Open the box with the key of a dataset; raises as :meth:`upload_key`.

        It also raises if a private dataset is marked as public.
        """
        return self._open(box, make_dataset_context(dataset_id, public=public))

    def opens_without_retired(self, box: bytes) -> bool:
        """Whether the current key opens the box."""
        return _decrypt(self._boxes[0], box) != b""

    def fingerprint_key(self, owner_id: str) -> bytes:
        """Derive the key of one owner's fingerprints, so that two owners' fingerprints are unrelated."""
        return hmac.digest(self._fingerprints, owner_id.encode(), "sha256")

    def series_key(self, owner_id: str, series: str) -> bytes:
        """Derive the key of one series of an owner: of its pseudonyms, and of its registers."""
        return derive_key(self._fingerprints, f"series|{owner_id}|{series}".encode())

    def attempt_key(self, job_id: str, token: int) -> bytes:
        """Derive the key of the mailbox of one attempt of a job."""
        return hmac.digest(self._attempts, f"{job_id}|{token}".encode(), "sha256")

    def _open(self, box: bytes, context: bytes) -> bytes:
        content = next(filter(None, (_decrypt(each, box) for each in self._boxes)), b"")
        if len(content) != KEY_BYTES + CONTEXT_BYTES or not hmac.compare_digest(content[KEY_BYTES:], context):
            raise VaultError
        return content[:KEY_BYTES]


def _decrypt(opener: SealedBox[PrivateKey], box: bytes) -> bytes:
    """Open the box; empty if it was sealed to another key."""
    try:
        return bytes(opener.decrypt(box))
    except (CryptoError, ValueError):
        return b""


def compute_fingerprint(owner_key: bytes, sha256: bytes) -> str:
    """Compute the fingerprint of a content: 64 hexadecimal digits, keyed by owner.

    Only a holder of the owner's fingerprint key can compute it from the content's bytes.
    """
    return hmac.new(owner_key, sha256, "sha256").hexdigest()
