"""Signatures over the canonical form of statements."""

import base64
import copy
import hashlib
from typing import Any

import pytest
import rfc8785
from hypothesis import given
from nacl.signing import SigningKey, VerifyKey

from app.vault.signing import KeyRing, Signer, verify
from tests.factories.json_values import JSON_VALUES

SEED = bytes(range(32))
STATEMENT = {"b": [1, 2.5, None, True], "a": {"ä": "x", "n": -0.0}}


def test_signature_is_ed25519_over_the_canonical_form() -> None:
    """It is checked with PyNaCl and hashlib; the bytes follow RFC 8785 in any order of members."""
    signed = Signer(SEED).sign(STATEMENT)
    canonical = '{"a":{"n":0,"ä":"x"},"b":[1,2.5,null,true]}'.encode()
    public = bytes(SigningKey(SEED).verify_key)
    VerifyKey(public).verify(canonical, base64.b64decode(signed["signature"]))
    assert signed["key_id"] == "ed25519:" + hashlib.sha256(public).hexdigest()[:16]
    assert signed["statement"] == STATEMENT


@pytest.mark.slow
@given(JSON_VALUES)
def test_signed_statement_is_verified(value: Any) -> None:
    signer = Signer(SEED)
    assert verify(signer.sign({"value": value}), signer.public_key)


@pytest.mark.parametrize("value", [float("nan"), float("inf"), 2**60, b"bytes", object()])
def test_value_that_json_cannot_represent_is_not_signed(value: Any) -> None:
    with pytest.raises(rfc8785.CanonicalizationError):
        Signer(SEED).sign({"value": value})


def altered() -> list[dict[str, Any]]:
    signed = Signer(SEED).sign(STATEMENT)
    other = Signer(bytes(32)).sign(STATEMENT)
    return [
        {**signed, "statement": {**STATEMENT, "c": 1}},
        {**signed, "signature": other["signature"]},
        {**signed, "signature": signed["signature"][:-4]},
        {**signed, "signature": "…"},
        {**signed, "signature": 7},
        {**signed, "key_id": other["key_id"]},
        {key: value for key, value in signed.items() if key != "key_id"},
        {key: value for key, value in signed.items() if key != "statement"},
        {**signed, "statement": {"a": float("nan")}},
        other,
        {},
    ]


@pytest.mark.parametrize("document", altered(), ids=range(len(altered())))
def test_altered_document_is_refused_without_an_error(document: dict[str, Any]) -> None:
    assert not verify(document, Signer(SEED).public_key)


@pytest.mark.parametrize("key", ["", "…", "AAAA", "x" * 44])
def test_malformed_key_verifies_nothing(key: str) -> None:
    assert not verify(Signer(SEED).sign(STATEMENT), key)


def test_signing_does_not_change_the_statement() -> None:
    before = copy.deepcopy(STATEMENT)
    Signer(SEED).sign(STATEMENT)
    assert before == STATEMENT


def test_detached_signature_is_verified_with_its_own_statement_only() -> None:
    signer = Signer(SEED)
    signature = signer.sign_detached(STATEMENT)
    assert signature == (signer.sign(STATEMENT)["signature"], signer.key_id)
    assert signer.ring.verify_detached(STATEMENT, signature, ("audit", 1))
    assert not signer.ring.verify_detached({**STATEMENT, "more": 1}, signature, ("audit", 1))
    assert not signer.ring.verify_detached(STATEMENT, (None, None), ("audit", 1))


def test_retired_key_is_trusted_up_to_its_cutoff_for_detached_signatures() -> None:
    retired = Signer(bytes(32))
    ring = KeyRing([retired.public_key], {retired.public_key: {"audit": 3}})
    signature = retired.sign_detached(STATEMENT)
    assert ring.verify_detached(STATEMENT, signature, ("audit", 3))
    assert not ring.verify_detached(STATEMENT, signature, ("audit", 4))


def test_key_ring_verifies_signatures_of_retired_keys() -> None:
    before, stranger = Signer(bytes(32)), Signer(b"\x07" * 32)
    ring = Signer(SEED, retired=[before.public_key]).ring
    assert ring.public_keys == (Signer(SEED).public_key, before.public_key)
    assert ring.verify(Signer(SEED).sign(STATEMENT))
    assert ring.verify(before.sign(STATEMENT))
    assert not ring.verify(stranger.sign(STATEMENT))
    assert not ring.verify({**before.sign(STATEMENT), "key_id": Signer(SEED).key_id})
    assert not KeyRing([]).verify(before.sign(STATEMENT))


@pytest.mark.parametrize("document", altered(), ids=range(len(altered())))
def test_key_ring_refuses_altered_documents_without_an_error(document: dict[str, Any]) -> None:
    assert not KeyRing([Signer(SEED).public_key]).verify(document)
