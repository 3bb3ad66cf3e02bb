"""Envelope encryption: boxes sealed to the worker's key, seekable encrypted chunks, and wrapped keys.

An upload is a header and chunks of 1 MiB, encrypted with XChaCha20-Poly1305. Its key is in a box in the area of wrapped
keys; an older upload has the box in its header. The associated data and the nonce of a chunk contain the upload, the
chunk's index and whether it is the last. Therefore dropped, reordered, spliced and truncated chunks are refused. An
empty upload is one empty last chunk. The construction is STREAM (Hoang, Reyhanitabar, Rogaway and Vizár 2015).

This module only seals boxes; ``workers.enclave.keys`` opens them.
"""

import hashlib
import secrets
from dataclasses import dataclass

from nacl.bindings import (
    crypto_aead_xchacha20poly1305_ietf_decrypt,
    crypto_aead_xchacha20poly1305_ietf_encrypt,
)
from nacl.exceptions import CryptoError
from nacl.public import PublicKey, SealedBox

from app.vault.errors import VaultError

KEY_BYTES = 32
CHUNK_BYTES = 1 << 20
TAG_BYTES = 16
NONCE_BYTES = 24
SEALED_CHUNK_BYTES = CHUNK_BYTES + TAG_BYTES
MAGIC, MAGIC_WITH_BOX = b"CVU2", b"CVU1"
CONTEXT_BYTES = 32
SEALED_BOX_BYTES = 48  # the ephemeral public key and the tag
BOX_BYTES = SEALED_BOX_BYTES + KEY_BYTES + CONTEXT_BYTES
HEADER_BYTES = len(MAGIC) + BOX_BYTES
HEADER = MAGIC.ljust(HEADER_BYTES, b"\0")  # older uploads have their box in place of the zeros


@dataclass(frozen=True, slots=True)
class SealedPart:
    """A part of a sealed upload, and the context of its chunks."""

    object_name: str
    bound_to: str


def new_key() -> bytes:
    """Generate a random key of 32 bytes."""
    return secrets.token_bytes(KEY_BYTES)


def derived_key(secret: bytes, purpose: bytes) -> bytes:
    """Derive a key for one purpose.

    Neither ``secret`` nor the keys for other purposes can be computed from it.
    """
    return hashlib.blake2b(purpose, key=secret, digest_size=KEY_BYTES, person=b"corevault").digest()


def key_context(purpose: str, identifier: str) -> bytes:
    """Return 32 bytes that bind a sealed key to its use.

    Therefore one box cannot replace another.
    """
    return hashlib.blake2b(_frame(purpose, identifier), digest_size=CONTEXT_BYTES).digest()


def seal_key(key: bytes, context: bytes, sealing_key: bytes) -> bytes:
    """Seal ``key`` and its context in a box that only the worker can open."""
    return bytes(SealedBox(PublicKey(sealing_key)).encrypt(key + context))


def dataset_context(dataset_id: str, *, public: bool) -> bytes:
    """Return the context of a dataset's key, which includes whether the dataset is public.

    Therefore an attacker who can change the database, but cannot open the box, cannot make the worker treat private
    rows as public.
    """
    return key_context("public dataset" if public else "dataset", dataset_id)


def seal_new_dataset_key(dataset_id: str, sealing_key: bytes, *, public: bool = False) -> bytes:
    """Generate a dataset key and seal it to the worker; the caller never gets the key itself."""
    return seal_key(new_key(), dataset_context(dataset_id, public=public), sealing_key)


def upload_context(upload_id: str) -> bytes:
    """Return the context of an upload's key in its box."""
    return key_context("upload", upload_id)


def seal_chunk(key: bytes, upload_id: str, index: int, plaintext: bytes, *, last: bool) -> bytes:
    """Encrypt chunk ``index``.

    Each pair of key and index is used at most once, so the index can be the nonce.
    """
    nonce, associated = _chunk_frame(upload_id, index, last)
    return crypto_aead_xchacha20poly1305_ietf_encrypt(plaintext, associated, nonce, key)


def open_chunk(key: bytes, upload_id: str, index: int, sealed: bytes, *, last: bool) -> bytes:
    """Decrypt chunk ``index``.

    Raises:
        VaultError: these bytes were not sealed at this place of this upload.
    """
    nonce, associated = _chunk_frame(upload_id, index, last)
    return _open(sealed, associated, nonce, key)


def digest_context(content_id: str) -> bytes:
    """Return the context of a content's announced digest in its box."""
    return key_context("digest", content_id)


def content_context(dataset_id: str, version: int) -> bytes:
    """Return the context of a content's keys and table."""
    return f"{dataset_id}|{version}".encode()


def declared_context(dataset_id: str, version: int, facts_digest: str) -> bytes:
    """Return the context of a content's wrapped key.

    It includes the declaration that the content was read with.
    """
    return content_context(dataset_id, version) + b"|" + facts_digest.encode()


def seal_message(plaintext: bytes, key: bytes, context: bytes) -> bytes:
    """Encrypt a message of any length, bound to ``context``; the output starts with the random nonce."""
    nonce = secrets.token_bytes(NONCE_BYTES)
    return nonce + crypto_aead_xchacha20poly1305_ietf_encrypt(plaintext, context, nonce, key)


def open_message(sealed: bytes, key: bytes, context: bytes) -> bytes:
    """Decrypt a message of :func:`seal_message`.

    Raises:
        VaultError: the bytes were altered, or the key or the context is not the right one.
    """
    return _open(sealed[NONCE_BYTES:], context, sealed[:NONCE_BYTES], key)


def wrap_key(key: bytes, under: bytes, context: bytes) -> bytes:
    """Encrypt ``key`` under another key, bound to ``context``."""
    return seal_message(key, under, context)


def unwrap_key(wrapped: bytes, under: bytes, context: bytes) -> bytes:
    """Decrypt a key of :func:`wrap_key`.

    Raises:
        VaultError: the bytes were altered, or the key or the context is not the right one.
    """
    if len(wrapped) != NONCE_BYTES + KEY_BYTES + TAG_BYTES:
        raise VaultError
    return open_message(wrapped, under, context)


def _open(sealed: bytes, associated: bytes, nonce: bytes, key: bytes) -> bytes:
    if len(sealed) < TAG_BYTES:
        raise VaultError
    try:
        return crypto_aead_xchacha20poly1305_ietf_decrypt(sealed, associated, nonce, key)
    except CryptoError:
        raise VaultError from None


def _chunk_frame(upload_id: str, index: int, last: bool) -> tuple[bytes, bytes]:
    place = bytes([last]) + index.to_bytes(8, "little")
    return place.ljust(NONCE_BYTES, b"\0"), _frame("corevault upload chunk", upload_id) + place


def _frame(*parts: str) -> bytes:
    """Encode the parts with their lengths, so that different lists give different bytes."""
    encoded = [part.encode() for part in parts]
    return b"".join(len(part).to_bytes(4, "little") + part for part in encoded)
