"""Envelope encryption: boxes sealed to the worker's key, encrypted chunks, and wrapped keys.

The bytes of an upload arrive in one or more parts. Each part is stored as one object, a *sealed upload*, under a new
key: a header, then chunks of at most 1 MiB, encrypted with XChaCha20-Poly1305. An empty part is one empty chunk.
The key is in a box in the area of wrapped keys. Objects of older versions have their box in the header.

Each chunk is bound to three facts: the ``upload_id``, its index, and whether it is the last chunk. Here ``upload_id``
names one part (:func:`app.datasets.uploads.models.name_context`). All three facts are in the associated data, and the
last two are also in the nonce. So an object is refused if its chunks were removed, reordered, or mixed with chunks of
another part. The construction is STREAM (Hoang, Reyhanitabar, Rogaway and Vizár 2015).

This module seals boxes. Only ``workers.enclave.keys`` opens them.
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
HEADER = MAGIC.ljust(HEADER_BYTES, b"\0")  # objects of older versions have their box in place of the zeros


@dataclass(frozen=True, slots=True)
class SealedPart:
    """A stored part, and the ``upload_id`` to which its chunks are bound."""

    object_name: str
    bound_to: str


def generate_key() -> bytes:
    """Generate a random key of 32 bytes."""
    return secrets.token_bytes(KEY_BYTES)


def derive_key(secret: bytes, purpose: bytes) -> bytes:
    """Derive a key for one purpose from ``secret``.

    A holder of the derived key can compute neither ``secret`` nor the keys for other purposes.
    """
    return hashlib.blake2b(purpose, key=secret, digest_size=KEY_BYTES, person=b"corevault").digest()


def make_key_context(purpose: str, identifier: str) -> bytes:
    """Return 32 bytes that bind a sealed key to one purpose and one object.

    The opener compares them, so a box for another purpose or object is refused.
    """
    return hashlib.blake2b(_frame(purpose, identifier), digest_size=CONTEXT_BYTES).digest()


def seal_key(key: bytes, context: bytes, sealing_key: bytes) -> bytes:
    """Seal ``key`` and its context in a box that only the worker can open."""
    return bytes(SealedBox(PublicKey(sealing_key)).encrypt(key + context))


def make_dataset_context(dataset_id: str, *, public: bool) -> bytes:
    """Return the context of a dataset's key in its box. It includes whether the dataset is public.

    An attacker may be able to change the database without being able to open boxes. Because of this context, such an
    attacker cannot make the worker treat private rows as public.
    """
    return make_key_context("public dataset" if public else "dataset", dataset_id)


def seal_new_dataset_key(dataset_id: str, sealing_key: bytes, *, public: bool = False) -> bytes:
    """Generate a dataset key and return it only in a box for the worker."""
    return seal_key(generate_key(), make_dataset_context(dataset_id, public=public), sealing_key)


def make_upload_context(upload_id: str) -> bytes:
    """Return the context of a part's key in its box."""
    return make_key_context("upload", upload_id)


def seal_chunk(key: bytes, upload_id: str, index: int, plaintext: bytes, *, last: bool) -> bytes:
    """Encrypt chunk ``index`` of a part.

    The nonce is made of ``index`` and ``last``. The caller must use each pair of key and index at most once.
    """
    nonce, associated = _chunk_frame(upload_id, index, last)
    return crypto_aead_xchacha20poly1305_ietf_encrypt(plaintext, associated, nonce, key)


def open_chunk(key: bytes, upload_id: str, index: int, sealed: bytes, *, last: bool) -> bytes:
    """Decrypt chunk ``index`` of a part.

    Raises:
        VaultError: ``sealed`` is not chunk ``index`` of this part, or was altered, or ``key`` or ``last`` is wrong.
    """
    nonce, associated = _chunk_frame(upload_id, index, last)
    return _open(sealed, associated, nonce, key)


def make_digest_context(content_id: str) -> bytes:
    """Return the context of the box with a file's announced digest."""
    return make_key_context("digest", content_id)


def make_content_context(dataset_id: str, version: int) -> bytes:
    """Return the context of a content's encrypted table.

    Older versions also used it for the content's wrapped key; now see :func:`make_declared_context`.
    """
    return f"{dataset_id}|{version}".encode()


def make_declared_context(dataset_id: str, version: int, facts_digest: str) -> bytes:
    """Return the context of a content's wrapped key.

    It includes ``facts_digest``, the digest of the declaration by which the file was parsed. So a table cannot be read
    under another declaration.
    """
    return make_content_context(dataset_id, version) + b"|" + facts_digest.encode()


def seal_message(plaintext: bytes, key: bytes, context: bytes) -> bytes:
    """Encrypt a message of any length, bound to ``context``. The output starts with the random nonce."""
    nonce = secrets.token_bytes(NONCE_BYTES)
    return nonce + crypto_aead_xchacha20poly1305_ietf_encrypt(plaintext, context, nonce, key)


def open_message(sealed: bytes, key: bytes, context: bytes) -> bytes:
    """Decrypt the output of :func:`seal_message`.

    Raises:
        VaultError: the bytes were altered, or the key or the context is not the right one.
    """
    return _open(sealed[NONCE_BYTES:], context, sealed[:NONCE_BYTES], key)


def wrap_key(key: bytes, under: bytes, context: bytes) -> bytes:
    """Encrypt ``key`` with the key ``under``, bound to ``context``."""
    return seal_message(key, under, context)


def unwrap_key(wrapped: bytes, under: bytes, context: bytes) -> bytes:
    """Decrypt the output of :func:`wrap_key`.

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
    """Encode texts with their lengths, so that different lists of texts give different bytes."""
    encoded = [part.encode() for part in parts]
    return b"".join(len(part).to_bytes(4, "little") + part for part in encoded)
