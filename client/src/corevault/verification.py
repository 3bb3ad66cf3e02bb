"""Verification of a release against its certificate.

Each of these checks has its error message:

- A published or pinned Ed25519 release key signed the RFC 8785 form of the certificate's statement.
- The statement is about this release, dataset, model and size.
- It states a finite cost under the zero-out relation, within the account's limit.
- It states the same reliability as the release.
- Every representation has the digest in the statement and the one in ``Repr-Digest``.
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
from corevault._arguments import describe
from corevault.errors import InvalidArgument, VerificationError, WrongType
from corevault.replies.key import SigningKey
from corevault.replies.release import Certificate, Release, Representation

FORMATS = ("json", "csv", "parquet", "npz")
BELIEF_FORMATS = ("json", "npz", "parquet")


def key_id_of(public_key: str) -> str:
    """The id of a base64 ``public_key``. It is ``ed25519:`` and 16 hexadecimal digits of the key's SHA-256."""
    try:
        raw = base64.b64decode(public_key, validate=True)
    except ValueError as error:  # also for text that is not ASCII
        raise VerificationError("The key is not base64; pass the public_key, not the key_id.") from error
    if len(raw) != 32:
        raise VerificationError("The key is not an Ed25519 key; pass the public_key of a published key.")
    return f"ed25519:{hashlib.sha256(raw).hexdigest()[:16]}"


def verify_release(
    release: Release,
    certificate: Certificate,
    points: Iterable[Representation],
    *,
    published: Iterable[SigningKey] = (),
    pinned: Iterable[str | SigningKey] | None = None,
) -> Mapping[str, Any]:
    """The verified statement.

    ``points`` are representations of points, of the belief or of groups.

    ``pinned`` are public keys that the caller trusts, as base64 text or as objects of an earlier ``signing_keys()``.
    With them, ``published`` keys do not count.

    Raises:
        VerificationError: a check failed; the message names it.
        InvalidArgument: ``pinned`` is empty. Without pinned keys the server, which they guard against, is trusted.

    >>> points, certificate = client.releases.points(release, "csv"), client.releases.certificate(release)
    >>> verify_release(release, certificate, [points], published=client.signing_keys())["unit"]
    {'kind': 'row'}
    """
    trusted = read_pins(pinned) or tuple(
        key.public_key for key in published if key.use == "release" and _is_ed25519(key)
    )
    verify_signature(certificate, trusted)
    _verify_subject(release, certificate.statement)
    _verify_cost(release, certificate.statement)
    for representation in points:
        verify_points(representation, certificate.statement)
    return certificate.statement


def read_pins(pinned: Iterable[str | SigningKey] | None, use: str = "release") -> tuple[str, ...] | None:
    """The pinned public keys in base64; None if ``pinned`` is None.

    A ``SigningKey`` counts if it has this ``use``: ``release`` or ``ledger``.

    Raises:
        InvalidArgument: no key remains.
        VerificationError: a text is not an Ed25519 public key.
        WrongType: ``pinned`` is not a list of keys.
    """
    if pinned is None:
        return None
    if isinstance(pinned, str | bytes | SigningKey | Mapping) or not isinstance(pinned, Iterable):
        raise WrongType("Pin a list of keys, even for one key: base64 text, or objects that signing_keys() returns.")
    given = tuple(pinned)
    pins = tuple(pin for pin in (_pin(each, use) for each in given) if pin is not None)
    if not given:
        raise InvalidArgument("An empty list pins no key; omit it to trust the keys that the server publishes.")
    if not pins:
        raise InvalidArgument(f"No pinned key signs {use}s; pin the keys whose use is {use!r}.")
    return pins


def _pin(key: object, use: str) -> str | None:
    if isinstance(key, SigningKey):
        return key.public_key if key.use == use and _is_ed25519(key) else None
    if not isinstance(key, str):
        raise WrongType(f"A pinned key must be base64 text or an object that signing_keys() returns; {describe(key)}.")
    key_id_of(key.strip())  # raises for anything but a public key
    return key.strip()


def _is_ed25519(key: SigningKey) -> bool:
    return key.algorithm.lower() == "ed25519"


def verify_signature(certificate: Certificate, trusted: Iterable[str]) -> None:
    """Raises ``VerificationError`` unless a trusted base64 public key signed the statement."""
    public_key = next((key for key in trusted if key_id_of(key) == certificate.key_id), None)
    if public_key is None:
        raise VerificationError("The certificate names a signing key that is not among the trusted keys.")
    try:
        message = rfc8785.dumps(dict(certificate.statement))
        signature = base64.b64decode(certificate.signature, validate=True)
        VerifyKey(base64.b64decode(public_key)).verify(message, signature)
    except BadSignatureError as error:
        raise VerificationError("The signature does not belong to this statement.") from error
    except (ValueError, rfc8785.CanonicalizationError) as error:
        raise VerificationError("The certificate's statement or signature is malformed.") from error


def _verify_subject(release: Release, statement: Mapping[str, Any]) -> None:
    subject = (statement.get("release_id"), statement.get("dataset_id"))
    if subject != (release.id, release.dataset_id):
        raise VerificationError("The certificate was issued for another release.")
    for member in ("method", "size", "model", "design"):
        if member in statement and statement[member] != release.raw.get(member):
            raise VerificationError(f"The release's {member} differs from the certified {member}.")
    if statement.get("reliability") != release.raw.get("reliability"):
        raise VerificationError("The release's reliability differs from the certified reliability.")
    if statement.get("posterior_digest") != _posterior_digest(release):
        raise VerificationError("The release's posterior differs from the certified posterior.")


def _posterior_digest(release: Release) -> str | None:
    posterior = release.raw.get("posterior")
    try:
        return None if posterior is None else _digest.digest_bytes(rfc8785.dumps(posterior))
    except rfc8785.CanonicalizationError as error:
        raise VerificationError("The release's posterior is malformed.") from error


def _verify_cost(release: Release, statement: Mapping[str, Any]) -> None:
    privacy = statement.get("privacy")
    if privacy is None and release.cost is None:
        return  # public data has no privacy cost
    if statement.get("relation") != "zero_out":
        raise VerificationError("The certificate does not state the zero-out relation.")
    if release.cost is None or privacy != {"epsilon": release.cost.epsilon, "delta": release.cost.delta}:
        raise VerificationError("The release's cost differs from the certified cost.")
    account = statement.get("account")
    limit = account.get("limit") if isinstance(account, dict) else None
    if not (isinstance(limit, dict) and _is_within(privacy, limit)):
        raise VerificationError("The certified cost is not within the account's limit.")


def _is_within(privacy: Mapping[str, Any], limit: Mapping[str, Any]) -> bool:
    try:
        return all(0 < float(privacy[part]) <= float(limit[part]) < math.inf for part in ("epsilon", "delta"))
    except (KeyError, TypeError, ValueError):
        return False


def verify_points(points: Representation, statement: Mapping[str, Any]) -> None:
    """Raises ``VerificationError`` unless the bytes have the certified digest and that of ``Repr-Digest``."""
    actual, part = _digest.digest_bytes(points.content), points.name.rpartition(".")[0] or "points"
    if certified_digests(statement).get(points.name) != actual:
        raise VerificationError(f"The digest of the {points.format} {part} differs from the certified digest.")
    if points.repr_digest is None or _digest.find_sha256_member(points.repr_digest) != actual:
        raise VerificationError(f"The digest of the {points.format} {part} differs from Repr-Digest.")


def certified_digests(statement: Mapping[str, Any]) -> Mapping[str, Any]:
    """The digests in a statement, by the name of the representation; empty if there are none."""
    digests = statement.get("digests")
    return digests if isinstance(digests, dict) else {}
