"""Boxes open for one purpose only, and fingerprints are keyed by owner."""

import hashlib
import hmac
from collections.abc import Callable

import pytest
from nacl.public import PrivateKey, PublicKey, SealedBox

from app.vault.envelope import generate_key, make_key_context, seal_key
from app.vault.errors import VaultError
from support.vault import Vault
from workers.enclave.keys import OpeningKey, compute_fingerprint


def test_boxes_open_for_their_purpose_only(vault: Vault) -> None:
    key = generate_key()
    upload = seal_key(key, make_key_context("upload", "ct_1"), vault.sealing_key)
    dataset = seal_key(key, make_key_context("dataset", "ct_1"), vault.sealing_key)
    opening = vault.opening_key
    assert opening.upload_key(upload, "ct_1") == opening.dataset_key(dataset, "ct_1") == key
    other = OpeningKey(bytes(PrivateKey.generate()))
    attempts: list[tuple[Callable[[bytes, str], bytes], bytes, str]] = [
        (opening.upload_key, upload, "ct_2"),
        (opening.upload_key, dataset, "ct_1"),
        (opening.dataset_key, upload, "ct_1"),
        (other.upload_key, upload, "ct_1"),
    ]
    for open_box, box, identifier in attempts:
        with pytest.raises(VaultError):
            open_box(box, identifier)
    with pytest.raises(VaultError):
        opening.dataset_key(dataset, "ct_1", public=True)


def test_malformed_boxes_are_refused(vault: Vault) -> None:
    short = bytes(SealedBox(PublicKey(vault.sealing_key)).encrypt(b"short"))
    good = seal_key(generate_key(), make_key_context("upload", "ct_1"), vault.sealing_key)
    flipped = good[:-1] + bytes([good[-1] ^ 1])
    for box in (b"", b"x", short, good[:-1], flipped):
        with pytest.raises(VaultError):
            vault.opening_key.upload_key(box, "ct_1")


def test_fingerprints_are_keyed_by_owner_and_opening_key() -> None:
    """So an owner cannot compute another owner's fingerprint to test a guess."""
    digest = hashlib.sha256(b"rows").digest()
    secret = bytes(range(32))
    owner = OpeningKey(secret).fingerprint_key("key_a")
    expected = compute_fingerprint(owner, digest)
    assert expected == compute_fingerprint(OpeningKey(secret).fingerprint_key("key_a"), digest)
    inner = hmac.new(bytes.fromhex(OpeningKey(secret)._fingerprints.hex()), b"key_a", hashlib.sha256).digest()
    assert expected == hmac.new(inner, digest, hashlib.sha256).hexdigest()
    others = {
        compute_fingerprint(OpeningKey(secret).fingerprint_key("key_b"), digest),
        compute_fingerprint(OpeningKey(bytes(32)).fingerprint_key("key_a"), digest),
        compute_fingerprint(owner, hashlib.sha256(b"row").digest()),
        digest.hex(),
    }
    assert expected not in others
    assert len(others) == 4
