"""A sealed upload as a seekable file. Only the enclave may import this module."""

import io
from collections import OrderedDict
from typing import BinaryIO

from app.errors import DependencyUnavailable
from app.vault.envelope import (
    BOX_BYTES,
    CHUNK_BYTES,
    HEADER_BYTES,
    MAGIC,
    MAGIC_WITH_BOX,
    SEALED_CHUNK_BYTES,
    TAG_BYTES,
    open_chunk,
)
from app.vault.errors import VaultError
from app.vault.seekable import SeekableReader


def compute_plaintext_size(sealed_bytes: int) -> int:
    """Compute the size of the plaintext from the size of the sealed object.

    Raises:
        VaultError: a sealed object cannot have that size.
    """
    body = sealed_bytes - HEADER_BYTES
    chunks = -(-body // SEALED_CHUNK_BYTES)
    if chunks < 1 or (chunks > 1 and body % SEALED_CHUNK_BYTES == TAG_BYTES):
        raise VaultError
    return body - chunks * TAG_BYTES


def read_box(source: BinaryIO) -> bytes | None:
    """Read the box with the upload's key from the header; only older uploads have it there.

    Raises:
        VaultError: the source is not a sealed upload.
    """
    source.seek(0)
    header = source.read(HEADER_BYTES)
    if len(header) != HEADER_BYTES or not header.startswith((MAGIC, MAGIC_WITH_BOX)):
        raise VaultError
    return header[-BOX_BYTES:] if header.startswith(MAGIC_WITH_BOX) else None


class SealedReader(SeekableReader):
    """Decrypts a sealed upload chunk by chunk on demand; every byte is authenticated.

    The constructor checks the last chunk. So a truncated or extended object is refused before the first read.

    Args:
        source: the sealed object, seekable; closed with the reader.
        key: the upload's key.
        upload_id: the context to which the chunks must be bound.
        cached_chunks: the number of decrypted chunks of 1 MiB in the cache.

    Raises:
        VaultError: authentication fails, here or in a later read.
        DependencyUnavailable: the store does not deliver the bytes.
    """

    def __init__(self, source: BinaryIO, key: bytes, upload_id: str, cached_chunks: int = 2) -> None:
        self._source = source
        self._key = key
        self._upload_id = upload_id
        self._cached_chunks = cached_chunks
        self._cache: OrderedDict[int, bytes] = OrderedDict()
        super().__init__(compute_plaintext_size(source.seek(0, io.SEEK_END)))
        self._chunks = max(1, -(-self.size // CHUNK_BYTES))
        self._chunk(self._chunks - 1)

    def readinto(self, buffer: bytearray | memoryview) -> int:  # type: ignore[override]  # typeshed accepts any buffer; this one must be writable
        """Fill the whole buffer, unless the plaintext ends first."""
        target = memoryview(buffer).cast("B")
        filled = 0
        while filled < len(target) and self._position < self.size:
            index, start = divmod(self._position, CHUNK_BYTES)
            piece = memoryview(self._chunk(index))[start : start + len(target) - filled]
            target[filled : filled + len(piece)] = piece
            filled += len(piece)
            self._position += len(piece)
        return filled

    def close(self) -> None:
        self._cache.clear()
        self._source.close()
        super().close()

    def _chunk(self, index: int) -> bytes:
        if index in self._cache:
            self._cache.move_to_end(index)
            return self._cache[index]
        try:
            self._source.seek(HEADER_BYTES + index * SEALED_CHUNK_BYTES)
            sealed = self._source.read(SEALED_CHUNK_BYTES)
        except OSError:
            raise DependencyUnavailable from None
        plaintext = open_chunk(self._key, self._upload_id, index, sealed, last=index == self._chunks - 1)
        self._cache[index] = plaintext
        if len(self._cache) > self._cached_chunks:
            self._cache.popitem(last=False)
        return plaintext
