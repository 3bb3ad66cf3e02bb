"""The sealed reader behaves like a file, and refuses altered uploads."""

import io
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.vault.envelope import CHUNK_BYTES, HEADER, HEADER_BYTES, MAGIC_WITH_BOX, SEALED_CHUNK_BYTES, seal_chunk
from app.vault.errors import VaultError
from app.vault.reader import SealedReader, read_box

KEY = bytes(range(32))
PLAINTEXT = random.Random(1).randbytes(3 * CHUNK_BYTES + 1000)


def chunks(upload_id: str = "up", plaintext: bytes = PLAINTEXT) -> list[bytes]:
    pieces = [plaintext[start : start + CHUNK_BYTES] for start in range(0, len(plaintext), CHUNK_BYTES)] or [b""]
    return [
        seal_chunk(KEY, upload_id, index, piece, last=index == len(pieces) - 1) for index, piece in enumerate(pieces)
    ]


CHUNKS = chunks()


def read_all(parts: list[bytes], upload_id: str = "up", key: bytes = KEY) -> bytes:
    return SealedReader(io.BytesIO(bytes(HEADER_BYTES) + b"".join(parts)), key, upload_id).read()


reads = st.lists(
    st.tuples(st.integers(-10, len(PLAINTEXT) + 10), st.sampled_from([0, 1, 2]), st.integers(0, CHUNK_BYTES * 2)),
    max_size=8,
)


@settings(max_examples=30, deadline=None)
@given(reads)
def test_sealed_reader_reads_and_seeks_like_a_file(steps: list[tuple[int, int, int]]) -> None:
    """It is compared with BytesIO over the same plaintext."""
    sealed = SealedReader(io.BytesIO(bytes(HEADER_BYTES) + b"".join(CHUNKS)), KEY, "up")
    plain = io.BytesIO(PLAINTEXT)
    for offset, whence, size in steps:
        base = (0, plain.tell(), len(PLAINTEXT))[whence]
        if base + offset >= 0:
            assert sealed.seek(offset, whence) == plain.seek(base + offset)
        else:
            with pytest.raises(ValueError, match="position"):
                sealed.seek(offset, whence)
        assert sealed.read(size) == plain.read(size)
        assert sealed.tell() == plain.tell()
    assert sealed.size == len(PLAINTEXT)


def test_sealed_chunks_read_back_as_the_plaintext() -> None:
    assert read_all(CHUNKS) == PLAINTEXT
    assert read_all(chunks(plaintext=b"")) == b""


OTHER = chunks("other", PLAINTEXT)
TAMPERED = {
    "chunk dropped": [CHUNKS[0], *CHUNKS[2:]],
    "first dropped": CHUNKS[1:],
    "last dropped": CHUNKS[:-1],
    "reordered": [CHUNKS[1], CHUNKS[0], *CHUNKS[2:]],
    "repeated": [CHUNKS[0], CHUNKS[0], *CHUNKS[1:]],
    "spliced from another upload": [CHUNKS[0], OTHER[1], *CHUNKS[2:]],
    "last appended again": [*CHUNKS, CHUNKS[-1]],
    "empty last appended": [*CHUNKS, seal_chunk(KEY, "up", 4, b"", last=True)],
    "garbage appended": [*CHUNKS, b"x"],
    "truncated within a chunk": [*CHUNKS[:-1], CHUNKS[-1][:-1]],
    "truncated to a tag": [*CHUNKS[:-1], CHUNKS[-1][:16]],
    "truncated to less": [*CHUNKS[:-1], CHUNKS[-1][:5]],
    "all dropped": [],
    "another upload": OTHER,
}


@pytest.mark.parametrize("parts", TAMPERED.values(), ids=TAMPERED.keys())
def test_changed_chunks_are_refused(parts: list[bytes]) -> None:
    with pytest.raises(VaultError):
        read_all(parts)


def test_sealed_reader_with_another_key_is_refused() -> None:
    with pytest.raises(VaultError):
        read_all(CHUNKS, key=bytes(32))


def test_truncation_is_refused_before_the_first_read() -> None:
    with pytest.raises(VaultError):
        SealedReader(io.BytesIO(bytes(HEADER_BYTES) + b"".join(CHUNKS[:-1])), KEY, "up")


@settings(max_examples=40, deadline=None)
@given(st.integers(0, (3 * SEALED_CHUNK_BYTES + 1016) * 8 - 1))
def test_every_flipped_bit_is_refused(position: int) -> None:
    sealed = bytearray(b"".join(CHUNKS))
    sealed[position // 8] ^= 1 << position % 8
    with pytest.raises(VaultError):
        read_all([bytes(sealed)])


@pytest.mark.parametrize("content", [b"", b"CVU1", HEADER[:-1], b"PAR1" + bytes(HEADER_BYTES)])
def test_file_that_is_no_sealed_upload_is_refused(content: bytes) -> None:
    with pytest.raises(VaultError):
        read_box(io.BytesIO(content))


def test_only_older_uploads_contain_their_key() -> None:
    older = MAGIC_WITH_BOX + random.Random(2).randbytes(HEADER_BYTES - len(MAGIC_WITH_BOX))
    assert read_box(io.BytesIO(older)) == older.removeprefix(MAGIC_WITH_BOX)
    assert read_box(io.BytesIO(HEADER)) is None
