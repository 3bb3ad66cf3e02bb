"""Chunks and wrapped keys open only with their key and context."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from nacl.public import PrivateKey, SealedBox

from app.vault import envelope
from app.vault.envelope import (
    generate_key,
    make_content_context,
    make_key_context,
    open_chunk,
    seal_chunk,
    unwrap_key,
    wrap_key,
)
from app.vault.errors import VaultError

KEY = bytes(range(32))


@given(st.binary(max_size=200), st.integers(0, 2**63 - 1), st.booleans())
def test_chunk_opens_in_its_place(plaintext: bytes, index: int, last: bool) -> None:
    sealed = seal_chunk(KEY, "up", index, plaintext, last=last)
    assert len(sealed) == len(plaintext) + 16
    assert open_chunk(KEY, "up", index, sealed, last=last) == plaintext


@pytest.mark.parametrize(
    ("key", "upload", "index", "last"),
    [(bytes(32), "up", 3, False), (KEY, "pu", 3, False), (KEY, "up", 2, False), (KEY, "up", 3, True)],
    ids=["key", "upload", "index", "last"],
)
def test_chunk_opens_only_with_its_key_and_in_its_place(key: bytes, upload: str, index: int, last: bool) -> None:
    """W1: a sealed chunk has one place."""
    sealed = seal_chunk(KEY, "up", 3, b"row", last=False)
    with pytest.raises(VaultError):
        open_chunk(key, upload, index, sealed, last=last)


@pytest.mark.parametrize("sealed", [b"", bytes(15), bytes(16), bytes(40)])
def test_bytes_that_were_never_sealed_do_not_open(sealed: bytes) -> None:
    with pytest.raises(VaultError):
        open_chunk(KEY, "up", 0, sealed, last=True)


def test_every_bit_of_a_chunk_is_authenticated() -> None:
    sealed = seal_chunk(KEY, "up", 0, b"row", last=True)
    for position in range(len(sealed) * 8):
        flipped = bytearray(sealed)
        flipped[position // 8] ^= 1 << position % 8
        with pytest.raises(VaultError):
            open_chunk(KEY, "up", 0, bytes(flipped), last=True)


def test_wrapped_key_opens_only_with_its_key_and_context() -> None:
    key, under, context = generate_key(), generate_key(), make_content_context("ds_1", 2)
    wrapped = wrap_key(key, under, context)
    assert unwrap_key(wrapped, under, context) == key
    assert key not in wrapped
    assert wrap_key(key, under, context) != wrapped
    others = [(wrapped, generate_key(), context), (wrapped[:-1], under, context), (b"", under, context)]
    others += [(wrapped, under, make_content_context(*place)) for place in (("ds_1", 3), ("ds_2", 2))]
    for sealed, other_key, other_context in others:
        with pytest.raises(VaultError):
            unwrap_key(sealed, other_key, other_context)


def test_box_contains_the_context_of_its_purpose(sealing_key: bytes, opening_secret: bytes) -> None:
    """W1: a key opens for its purpose alone."""
    box = envelope.seal_new_dataset_key("ds_1", sealing_key)
    assert len(box) == envelope.BOX_BYTES
    content = SealedBox(PrivateKey(opening_secret)).decrypt(box)
    assert content[32:] == make_key_context("dataset", "ds_1")
    contexts = {make_key_context(*parts) for parts in [("dataset", "ds_1"), ("upload", "ds_1"), ("datasetd", "s_1")]}
    assert len(contexts) == 3
