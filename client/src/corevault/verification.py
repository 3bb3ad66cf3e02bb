"""Whether a release is what its certificate says.

Checked, each with a sentence of its own where it fails: the certificate is signed by a published (or
pinned) Ed25519 release key over the RFC 8785 form of its statement; the statement is about this very
release, dataset, model and size; it promises a finite cost under the zero-out relation within the
account's limit; every representation has the digest that the statement and ``Repr-Digest`` name.
"""

import base64
import hashlib
import math
from collections.abc import Iterable, Mapping
from typing import Any

import rfc8785
from nacl.exceptions import BadSignatureError
from nacl.signing import VerifyKey

from corevault import _digest
from corevault._arguments import what_came
from corevault.errors import InvalidArgument, VerificationError, WrongType
from corevault.replies.key import SigningKey
from corevault.replies.release import Certificate, Points, Release

FORMATS = ("json", "csv", "parquet", "npz")


def key_id_of(public_key: str) -> str:
    """The id of a base64 ``public_key``. It is ``ed25519:`` and 16 hexadecimal digits of the key's SHA-256."""
    try:
        raw = base64.b64decode(public_key, validate=True)
    except ValueError as error:  # also for text that is not ASCII
        raise VerificationError("The release key is not base64; give the public_key, not the key_id.") from error
    if len(raw) != 32:
        raise VerificationError("The release key is not an Ed25519 key.")
    return f"ed25519:{hashlib.sha256(raw).hexdigest()[:16]}"


def verify_release(
    release: Release,
    certificate: Certificate,
    points: Iterable[Points],
    *,
    published: Iterable[SigningKey] = (),
    pinned: Iterable[str | SigningKey] | None = None,
) -> Mapping[str, Any]:
    """The verified statement, or ``VerificationError`` with the sentence that says what does not hold.

    ``pinned`` are public keys that the caller trusts, as base64 text or as ``signing_keys()`` returned them earlier:
    where they are given, ``published`` ones do not count. Raises ``InvalidArgument`` for an empty list of them, which
    would trust the server that they guard against.
    """
    trusted = pins_of(pinned) or tuple(key.public_key for key in published if key.use == "release" and _is_ed25519(key))
    verify_signature(certificate, trusted)
    _verify_subject(release, certificate.statement)
    _verify_promise(release, certificate.statement)
    for representation in points:
        verify_points(representation, certificate.statement)
    return certificate.statement


def pins_of(pinned: Iterable[str | SigningKey] | None) -> tuple[str, ...] | None:
    """The pinned public keys in base64; None where none are given.

    ``SigningKey`` objects count where their ``use`` is ``release``. Raises ``InvalidArgument`` where no key is left,
    ``VerificationError`` for text that is not an Ed25519 public key, ``WrongType`` for anything but a list of keys.
    """
    if pinned is None:
        return None
    if isinstance(pinned, str | bytes | SigningKey | Mapping) or not isinstance(pinned, Iterable):
        raise WrongType("Pin a list of public keys (base64 text, or what signing_keys() returns), also for one key.")
    given = tuple(pinned)
    pins = tuple(pin for pin in map(_pin, given) if pin is not None)
    if not given:
        raise InvalidArgument("An empty list pins no key; leave it out to trust the keys that the server publishes.")
    if not pins:
        raise InvalidArgument("None of these keys signs releases; pin those whose use is 'release'.")
    return pins


def _pin(key: object) -> str | None:
    if isinstance(key, SigningKey):
        return key.public_key if key.use == "release" and _is_ed25519(key) else None
    if not isinstance(key, str):
        raise WrongType(f"A pinned key is base64 text, or a SigningKey as signing_keys() returns it; {what_came(key)}.")
    key_id_of(key.strip())  # raises for anything but a public key
    return key.strip()


def _is_ed25519(key: SigningKey) -> bool:
    return key.algorithm.lower() == "ed25519"


def verify_signature(certificate: Certificate, trusted: Iterable[str]) -> None:
    """Raises ``VerificationError`` unless a trusted base64 public key signed the statement."""
    public_key = next((key for key in trusted if key_id_of(key) == certificate.key_id), None)
    if public_key is None:
        raise VerificationError("The certificate names a signing key that is not among the trusted ones.")
    try:
        message = rfc8785.dumps(dict(certificate.statement))
        signature = base64.b64decode(certificate.signature, validate=True)
        VerifyKey(base64.b64decode(public_key)).verify(message, signature)
    except BadSignatureError as error:
        raise VerificationError("The signature does not belong to this statement.") from error
    except (ValueError, rfc8785.CanonicalizationError) as error:
        raise VerificationError("The certificate's statement or signature is malformed.") from error


def _verify_subject(release: Release, statement: Mapping[str, Any]) -> None:
    said = (statement.get("release_id"), statement.get("dataset_id"))
    if said != (release.id, release.dataset_id):
        raise VerificationError("The certificate was issued for another release.")
    for member in ("method", "size", "model", "design"):
        if member in statement and statement[member] != release.raw.get(member):
            raise VerificationError(f"The release's {member} is not the one that was certified.")
    if statement.get("posterior_digest") != _posterior_digest(release):
        raise VerificationError("The release's posterior is not the one that was certified.")


def _posterior_digest(release: Release) -> str | None:
    stated = release.raw.get("posterior")
    try:
        return None if stated is None else _digest.of_bytes(rfc8785.dumps(stated))
    except rfc8785.CanonicalizationError as error:
        raise VerificationError("The release's posterior is malformed.") from error


def _verify_promise(release: Release, statement: Mapping[str, Any]) -> None:
    privacy = statement.get("privacy")
    if privacy is None and release.cost is None:
        return  # public data: there is nothing to promise
    if statement.get("relation") != "zero_out":
        raise VerificationError("The certificate does not state the zero-out relation.")
    if release.cost is None or privacy != {"epsilon": release.cost.epsilon, "delta": release.cost.delta}:
        raise VerificationError("The release's cost is not the one that was certified.")
    account = statement.get("account")
    limit = account.get("limit") if isinstance(account, dict) else None
    if not (isinstance(limit, dict) and _within(privacy, limit)):
        raise VerificationError("The certified cost is not within the account's limit.")


def _within(privacy: Mapping[str, Any], limit: Mapping[str, Any]) -> bool:
    try:
        return all(0 < float(privacy[part]) <= float(limit[part]) < math.inf for part in ("epsilon", "delta"))
    except (KeyError, TypeError, ValueError):
        return False


def verify_points(points: Points, statement: Mapping[str, Any]) -> None:
    """Raises ``VerificationError`` unless the bytes have the certified digest, and the one of ``Repr-Digest``."""
    actual = _digest.of_bytes(points.content)
    digests = statement.get("digests")
    if not isinstance(digests, dict) or digests.get(points.format) != actual:
        raise VerificationError(f"The {points.format} points are not those that were certified.")
    if points.repr_digest is None or _digest.sha256_member(points.repr_digest) != actual:
        raise VerificationError(f"The {points.format} points do not have the digest that Repr-Digest names.")
