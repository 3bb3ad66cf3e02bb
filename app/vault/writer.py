"""Seal an upload as it arrives. One chunk is in memory, and no plaintext is on disk."""

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from threading import RLock

from app.errors import ContentTooLarge, DependencyUnavailable
from app.vault.envelope import CHUNK_BYTES, HEADER, generate_key, make_upload_context, seal_chunk, seal_key
from app.vault.store import ObjectStore


@dataclass(frozen=True, slots=True)
class SealedUpload:
    """Name of a published object, and the size of its plaintext in bytes."""

    name: str
    size: int


class UploadWriter:
    """Writes a sealed upload. Leaving its ``with`` block before :meth:`finish` removes the object.

    ``box`` is the upload's key, sealed for the worker; without it the object cannot be decrypted. The box is stored
    elsewhere: destroying it makes every copy of the object unreadable.

    Another thread may call :meth:`abort` at any time. It waits for the current operation, and later operations fail.

    Args:
        store: the store of the sealed object.
        sealing_key: the worker's public key (32 bytes).
        upload_id: the context to which the chunks are bound; the reader needs the same one.
        max_bytes: the largest accepted size of the plaintext.
        name: name of the object, if the caller needs it beforehand.
    """

    def __init__(
        self, store: ObjectStore, sealing_key: bytes, upload_id: str, max_bytes: int, name: str | None = None
    ) -> None:
        self._upload_id = upload_id
        self._max_bytes = max_bytes
        self._key = generate_key()
        self._digest = hashlib.sha256()
        self._pending = bytearray()
        self._index = 0
        self._size = 0
        self._lock, self._is_aborted = RLock(), False
        self.box = seal_key(self._key, make_upload_context(upload_id), sealing_key)
        self._target = store.create(name)
        self._guarded_write(HEADER)

    @property
    def sha256(self) -> bytes:
        """Digest of the plaintext so far, to compare with Content-Digest only. Never store it."""
        return self._digest.digest()

    @property
    def size(self) -> int:
        """Size of the plaintext so far, in bytes."""
        return self._size

    def write(self, data: bytes | bytearray) -> None:
        """Write the next bytes of the body, of any length. After an error the upload is removed.

        Raises:
            ContentTooLarge: the plaintext exceeds ``max_bytes``.
            DependencyUnavailable: the store is full or does not answer, or the upload was aborted.
        """
        with self._hold_lock():
            if self._size + len(data) > self._max_bytes:
                self.abort()
                raise ContentTooLarge
            self._size += len(data)
            self._digest.update(data)
            rest = memoryview(data)
            while rest:
                if len(self._pending) == CHUNK_BYTES:  # more bytes follow, so this chunk is not the last
                    self._seal_pending(last=False)
                room = CHUNK_BYTES - len(self._pending)
                self._pending += rest[:room]
                rest = rest[room:]

    def finish(self) -> SealedUpload:
        """Seal the last chunk and publish the object. After an error the upload is removed.

        Raises:
            DependencyUnavailable: the store is full or does not answer, or the upload was aborted.
        """
        with self._hold_lock():
            self._seal_pending(last=True)
            try:
                name = self._target.publish()
            except BaseException:
                self.abort()
                raise
            return SealedUpload(name, self._size)

    def abort(self) -> None:
        """Remove the upload; harmless after :meth:`finish`."""
        with self._lock:
            self._is_aborted = True
            self._pending.clear()
            self._target.discard()

    @contextmanager
    def _hold_lock(self) -> Iterator[None]:
        """Hold the lock: an abort in between would leave a truncated object."""
        with self._lock:
            if self._is_aborted:
                raise DependencyUnavailable
            yield

    def __enter__(self) -> "UploadWriter":
        return self

    def __exit__(self, *_: object) -> None:
        self.abort()

    def _seal_pending(self, *, last: bool) -> None:
        sealed = seal_chunk(self._key, self._upload_id, self._index, bytes(self._pending), last=last)
        self._pending.clear()
        self._index += 1
        self._guarded_write(sealed)

    def _guarded_write(self, data: bytes) -> None:
        try:
            self._target.write(data)
        except BaseException:
            self.abort()
            raise
