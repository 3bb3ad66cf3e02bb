"""A sealed upload as a seekable file. Only the enclave may import this."""

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


def plaintext_size(sealed_bytes: int) -> int:
    """Bytes of plaintext in a sealed object of so many bytes.

    Raises:
        VaultError: no sealed object has that size.
    """
    body = sealed_bytes - HEADER_BYTES
    chunks = -(-body // SEALED_CHUNK_BYTES)
    if chunks < 1 or (chunks > 1 and body % SEALED_CHUNK_BYTES == TAG_BYTES):
        raise VaultError
    return body - chunks * TAG_BYTES


def box_within(source: BinaryIO) -> bytes | None:
    """The box with the upload's key, if it is an older upload, which has it in its header.

    Raises:
        VaultError: if this is not a sealed upload.
    """
    source.seek(0)
    header = source.read(HEADER_BYTES)
    if len(header) != HEADER_BYTES or not header.startswith((MAGIC, MAGIC_WITH_BOX)):
        raise VaultError
    return header[-BOX_BYTES:] if header.startswith(MAGIC_WITH_BOX) else None


class SealedReader(SeekableReader):
    """The plaintext of a sealed upload, decrypted chunk by chunk on demand; no byte of it is unauthenticated.

    Opening checks the last chunk, so a truncated or extended object is refused before anything is read.

    Args:
        source: the sealed object, seekable; closed with the reader.
        key: the upload's key.
        upload_id: what the chunks must be bound to.
        cached_chunks: how many decrypted chunks of 1 MiB to keep.

    Raises:
        VaultError: here and while reading, for any authentication failure.
        DependencyUnavailable: the store fails to deliver.
    """

    def __init__(self, source: BinaryIO, key: bytes, upload_id: str, cached_chunks: int = 2) -> None:
        self._source = source
        self._key = key
        self._upload_id = upload_id
        self._cached_chunks = cached_chunks
        self._cache: OrderedDict[int, bytes] = OrderedDict()
        super().__init__(plaintext_size(source.seek(0, io.SEEK_END)))
        self._chunks = max(1, -(-self.size // CHUNK_BYTES))
        self._chunk(self._chunks - 1)

    def readinto(self, buffer: bytearray | memoryview) -> int:  # type: ignore[override]  # the stub takes any buffer; ours are written to
        """Fills the whole buffer unless the plaintext ends first."""
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
