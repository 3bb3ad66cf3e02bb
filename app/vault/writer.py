"""Seals an upload as it arrives: one chunk in memory, nothing in the clear on disk."""

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from threading import RLock

from app.errors import ContentTooLarge, DependencyUnavailable
from app.vault.envelope import CHUNK_BYTES, HEADER, new_key, seal_chunk, seal_key, upload_context
from app.vault.store import ObjectStore


@dataclass(frozen=True, slots=True)
class SealedUpload:
    """A published object, and the bytes of plaintext in it."""

    name: str
    size: int


class UploadWriter:
    """Use in a ``with`` block: whatever leaves it before :meth:`finish` leaves nothing in the store.

    ``box`` holds the upload's key, for the worker alone: without it the object is noise. It lies elsewhere, so that it
    can be destroyed in every copy of the object at once.

    Another thread may abort it, also while it works: what has begun is done first, and nothing begins afterwards.

    Args:
        store: where the sealed object goes.
        sealing_key: the worker's public key (32 bytes).
        upload_id: what the chunks are bound to; the reader must name the same.
        max_bytes: the largest plaintext that is accepted.
        name: the object's, where the caller must know it beforehand.
    """

    def __init__(
        self, store: ObjectStore, sealing_key: bytes, upload_id: str, max_bytes: int, name: str | None = None
    ) -> None:
        self._upload_id = upload_id
        self._max_bytes = max_bytes
        self._key = new_key()
        self._digest = hashlib.sha256()
        self._pending = bytearray()
        self._index = 0
        self._size = 0
        self._turn, self._aborted = RLock(), False
        self.box = seal_key(self._key, upload_context(upload_id), sealing_key)
        self._target = store.create(name)
        self._guarded_write(HEADER)

    @property
    def sha256(self) -> bytes:
        """Of the plaintext so far; for comparing with Content-Digest only: never store it."""
        return self._digest.digest()

    @property
    def size(self) -> int:
        """Bytes of plaintext so far."""
        return self._size

    def write(self, data: bytes | bytearray) -> None:
        """Take the next bytes of the body, of any length.

        Raises:
            ContentTooLarge: beyond ``max_bytes``; the upload is gone.
            DependencyUnavailable: the store is full or away, or it was aborted; the upload is gone.
        """
        with self._working():
            if self._size + len(data) > self._max_bytes:
                self.abort()
                raise ContentTooLarge
            self._size += len(data)
            self._digest.update(data)
            rest = memoryview(data)
            while rest:
                if len(self._pending) == CHUNK_BYTES:  # more follows, so this chunk is not the last
                    self._seal_pending(last=False)
                room = CHUNK_BYTES - len(self._pending)
                self._pending += rest[:room]
                rest = rest[room:]

    def finish(self) -> SealedUpload:
        """Seal the last chunk and publish the object.

        Raises:
            DependencyUnavailable: the store is full or away, or it was aborted; the upload is gone.
        """
        with self._working():
            self._seal_pending(last=True)
            try:
                name = self._target.publish()
            except BaseException:
                self.abort()
                raise
            return SealedUpload(name, self._size)

    def abort(self) -> None:
        """Leave nothing behind; harmless after :meth:`finish`."""
        with self._turn:
            self._aborted = True
            self._pending.clear()
            self._target.discard()

    @contextmanager
    def _working(self) -> Iterator[None]:
        """The only thread meanwhile: an abort midway would leave an object that is cut short."""
        with self._turn:
            if self._aborted:
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
