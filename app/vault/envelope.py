"""How bytes are sealed: boxes to the worker's key, chunks that a reader can seek in, keys under keys.

An upload is a header and chunks of 1 MiB under XChaCha20-Poly1305; its key lies elsewhere, in a box among the wrapped
keys (that of an older upload lies in its header). Associated data and nonce of a chunk name the upload, the chunk's
index and whether it is the last, so that dropping, reordering, splicing and truncating are all refused. An empty upload
is a single empty last chunk.
(The construction is STREAM: Hoang, Reyhanitabar, Rogaway and Vizár 2015.)

What opens a box lives in ``workers.enclave.keys``; this module only closes them.
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
HEADER = MAGIC.ljust(HEADER_BYTES, b"\0")  # where older uploads have their box, newer ones have nothing


@dataclass(frozen=True, slots=True)
class SealedPart:
    """A part of a sealed upload, and what its chunks are bound to."""

    object_name: str
    bound_to: str


def new_key() -> bytes:
    """32 bytes from the operating system."""
    return secrets.token_bytes(KEY_BYTES)


def derived_key(secret: bytes, purpose: bytes) -> bytes:
    """A key for one purpose, of which nothing leads back to ``secret`` or to those of other purposes."""
    return hashlib.blake2b(purpose, key=secret, digest_size=KEY_BYTES, person=b"corevault").digest()


def key_context(purpose: str, identifier: str) -> bytes:
    """32 bytes that tie a boxed key to what it is for, so that one box cannot stand in for another."""
    return hashlib.blake2b(_frame(purpose, identifier), digest_size=CONTEXT_BYTES).digest()


def seal_key(key: bytes, context: bytes, sealing_key: bytes) -> bytes:
    """``key`` and its context in a box that only the worker opens."""
    return bytes(SealedBox(PublicKey(sealing_key)).encrypt(key + context))


def dataset_context(dataset_id: str, *, public: bool) -> bytes:
    """What a dataset's key is bound to: also whether it is public, so that whoever can alter the database, but not
    open the box, cannot have the rows of a private dataset read as public ones.
    """
    return key_context("public dataset" if public else "dataset", dataset_id)


def seal_new_dataset_key(dataset_id: str, sealing_key: bytes, *, public: bool = False) -> bytes:
    """A fresh dataset key, boxed to the worker; the caller never sees the key itself."""
    return seal_key(new_key(), dataset_context(dataset_id, public=public), sealing_key)


def upload_context(upload_id: str) -> bytes:
    """What the key of a sealed upload is bound to in its box."""
    return key_context("upload", upload_id)


def seal_chunk(key: bytes, upload_id: str, index: int, plaintext: bytes, *, last: bool) -> bytes:
    """Chunk ``index``; every (key, index) is sealed at most once, so the index can be the nonce."""
    nonce, associated = _chunk_frame(upload_id, index, last)
    return crypto_aead_xchacha20poly1305_ietf_encrypt(plaintext, associated, nonce, key)


def open_chunk(key: bytes, upload_id: str, index: int, sealed: bytes, *, last: bool) -> bytes:
    """The plaintext of chunk ``index``.

    Raises:
        VaultError: unless exactly these bytes were sealed at this place of this upload.
    """
    nonce, associated = _chunk_frame(upload_id, index, last)
    return _open(sealed, associated, nonce, key)


def digest_context(content_id: str) -> bytes:
    """What the announced digest of a content is bound to in its box."""
    return key_context("digest", content_id)


def content_context(dataset_id: str, version: int) -> bytes:
    """What the keys and the table of a content are bound to."""
    return f"{dataset_id}|{version}".encode()


def declared_context(dataset_id: str, version: int, facts_digest: str) -> bytes:
    """What a content's key is bound to under its dataset's: also the declaration that the content was read by."""
    return content_context(dataset_id, version) + b"|" + facts_digest.encode()


def seal_message(plaintext: bytes, key: bytes, context: bytes) -> bytes:
    """A message of any length, bound to ``context``; the random nonce comes first."""
    nonce = secrets.token_bytes(NONCE_BYTES)
    return nonce + crypto_aead_xchacha20poly1305_ietf_encrypt(plaintext, context, nonce, key)


def open_message(sealed: bytes, key: bytes, context: bytes) -> bytes:
    """The inverse of :func:`seal_message`.

    Raises:
        VaultError: for altered bytes, another key or another context.
    """
    return _open(sealed[NONCE_BYTES:], context, sealed[:NONCE_BYTES], key)


def wrap_key(key: bytes, under: bytes, context: bytes) -> bytes:
    """``key`` under another key, bound to ``context``: see :func:`seal_message`."""
    return seal_message(key, under, context)


def unwrap_key(wrapped: bytes, under: bytes, context: bytes) -> bytes:
    """The inverse of :func:`wrap_key`.

    Raises:
        VaultError: for altered bytes, another key or another context.
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
    """Parts behind their lengths, so that no two lists of parts give the same bytes."""
    encoded = [part.encode() for part in parts]
    return b"".join(len(part).to_bytes(4, "little") + part for part in encoded)
