"""The joined reader reads parts as one file, and refuses changed parts."""

import io
import random
from collections.abc import Sequence
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.vault.envelope import CHUNK_BYTES, HEADER_BYTES, seal_chunk
from app.vault.errors import VaultError
from app.vault.joined import OPEN_PARTS, JoinedReader
from app.vault.reader import SealedReader

KEY = bytes(range(32))
PLAINTEXT = random.Random(2).randbytes(2 * CHUNK_BYTES + 5000)


def sealed(plaintext: bytes, name: str) -> bytes:
    pieces = [plaintext[start : start + CHUNK_BYTES] for start in range(0, len(plaintext), CHUNK_BYTES)] or [b""]
    chunks = [seal_chunk(KEY, name, index, piece, last=index == len(pieces) - 1) for index, piece in enumerate(pieces)]
    return bytes(HEADER_BYTES) + b"".join(chunks)


def joined(parts: Sequence[bytes], names: Sequence[str] | None = None, opened: list[int] | None = None) -> JoinedReader:
    objects = [sealed(part, name) for part, name in zip(parts, names or map(str, range(len(parts))), strict=True)]

    def open_part(number: int) -> SealedReader:
        if opened is not None:
            opened.append(number)
        return SealedReader(io.BytesIO(objects[number]), KEY, str(number))

    return JoinedReader([len(part) for part in parts], open_part)


cuts = st.lists(st.integers(0, len(PLAINTEXT)), max_size=7).map(sorted)
reads = st.lists(
    st.tuples(st.integers(-10, len(PLAINTEXT) + 10), st.sampled_from([0, 1, 2]), st.integers(0, CHUNK_BYTES)),
    max_size=8,
)


@settings(max_examples=30, deadline=None)
@given(cuts, reads)
def test_joined_reader_reads_and_seeks_like_the_original_file(
    places: list[int], steps: list[tuple[int, int, int]]
) -> None:
    """It is compared with BytesIO over the whole file, for random cuts."""
    bounds = [0, *places, len(PLAINTEXT)]
    file = joined([PLAINTEXT[start:end] for start, end in pairwise(bounds)])
    plain = io.BytesIO(PLAINTEXT)
    assert file.size == len(PLAINTEXT)
    for offset, whence, size in steps:
        base = (0, plain.tell(), len(PLAINTEXT))[whence]
        if base + offset >= 0:
            assert file.seek(offset, whence) == plain.seek(base + offset)
        assert file.read(size) == plain.read(size)
        assert file.tell() == plain.tell()


def test_no_parts_or_empty_parts_are_an_empty_file() -> None:
    assert joined([]).read() == joined([b""]).read() == joined([b"", b""]).read() == b""


def test_joined_reader_opens_each_part_once_and_few_at_a_time() -> None:
    opened: list[int] = []
    file = joined([bytes([number]) for number in range(50)], opened=opened)
    assert file.read() == bytes(range(50))
    assert opened == list(range(50))
    file.seek(-OPEN_PARTS, io.SEEK_END)
    assert file.read() == bytes(range(50 - OPEN_PARTS, 50))
    assert len(opened) == 50


@pytest.mark.parametrize(
    ("names", "sizes"),
    [(["1", "0"], [3, 3]), (["0", "0"], [3, 3]), (["0", "1"], [3, 2]), (["0", "1"], [4, 3])],
    ids=["exchanged", "twice", "shorter", "longer"],
)
def test_exchanged_or_resized_parts_are_refused(names: list[str], sizes: list[int]) -> None:
    """W1: an attacker without the key who changes the list of parts cannot replace content."""
    objects = [sealed(part, name) for part, name in zip([b"abc", b"def"], names, strict=True)]
    file = JoinedReader(sizes, lambda number: SealedReader(io.BytesIO(objects[number]), KEY, str(number)))
    with pytest.raises(VaultError):
        file.read()
