"""Verification of published releases.

A release must agree with its certificate, with the ledger's chain, and with the bytes in the store.
"""

import hashlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

from sqlalchemy import select

from app.datasets.models import Dataset
from app.db import ReadSession
from app.errors import CorevaultError
from app.http.requests.digests import digest_header
from app.ledger.integrity import certificate_checks
from app.privacy.events import from_json
from app.releases.models import Release
from app.vault.errors import VaultError
from app.vault.signing import KeyRing
from app.vault.store import ObjectStore

Finding = tuple[str, str]
"""The id of a release, and a sentence that states its fault."""

Check = Callable[[ReadSession, Release, bool], str | None]
"""Return a fault of a release, or None. The flag is True for a release of private data."""

_CHUNK = 2**20


@dataclass(frozen=True, slots=True)
class CheckResult:
    """A check of a certificate in words, and its fault; None if it passed."""

    words: str
    fault: str | None


def find_faults(session: ReadSession, ring: KeyRing, store: ObjectStore | None) -> Iterator[Finding]:
    """Yield the faults of all releases. Without ``store``, the stored bytes are not checked."""
    query = select(Release, Dataset.sensitivity).join(Dataset, Dataset.id == Release.dataset_id).order_by(Release.id)
    checks: tuple[Check, ...] = (partial(_check_signature, ring), _check_statement, _check_charge)
    for release, sensitivity in session.execute(query.execution_options(yield_per=64)):
        for check in checks:
            if (fault := _apply(check, session, release, sensitivity == "private")) is not None:
                yield release.id, fault
        for fault in () if store is None else _check_objects(store, release):
            yield release.id, fault


def check_certificate(session: ReadSession, ring: KeyRing, release: Release, *, private: bool) -> Iterator[CheckResult]:
    """Check a release's certificate as :func:`find_faults` does, without its stored bytes."""
    checks: dict[str, Check] = {
        "The signature is valid, and by a key of this service.": partial(_check_signature, ring),
        "The statement names this release: its method, model, points, cost, and the digests of its files.": (
            _check_statement
        ),
    }
    if private:
        words = "The ledger has the charge of this run, and the entry and checkpoint that the statement names."
        checks[words] = _check_charge
    for words, check in checks.items():
        yield CheckResult(words, _apply(check, session, release, private))


def _apply(check: Check, session: ReadSession, release: Release, private: bool) -> str | None:
    """Apply a check. A row with an unexpected form, as after tampering, is a fault too."""
    try:
        return check(session, release, private)
    except (KeyError, TypeError, ValueError, AttributeError, IndexError):
        return "the certificate or the row is malformed"


def _check_signature(ring: KeyRing, _: ReadSession, release: Release, __: bool) -> str | None:
    return None if ring.verify(release.certificate) else "the certificate's signature is not valid"


def _check_statement(_: ReadSession, release: Release, __: bool) -> str | None:
    stated: dict[str, Any] = release.certificate["statement"]
    digests = {name: digest_header(bytes.fromhex(each["sha256"])) for name, each in release.representations.items()}
    same = (
        (stated["release_id"], stated["dataset_id"]) == (release.id, release.dataset_id)
        and stated["digests"] == digests
        and all(stated[name] == release.body[name] for name in ("method", "model", "size", "design"))
        and stated["privacy"] == release.body["cost"]
        and stated.get("reliability") == release.body.get("reliability")
    )
    return None if same else "the certificate does not match the release"


def _check_charge(session: ReadSession, release: Release, private: bool) -> str | None:
    if not private:
        return None
    stated: dict[str, Any] = release.certificate["statement"]
    if not certificate_checks.is_covered(
        session, release.job_id, tuple(from_json(event) for event in stated["events"])
    ):
        return "the ledger has no settled charge with the certificate's events"
    if not certificate_checks.is_chained(session, release.job_id, stated["account"]):
        return "the ledger entry or checkpoint that the certificate names is not in the chains, or precedes the charge"
    return None


def _check_objects(store: ObjectStore, release: Release) -> Iterator[str]:
    for name, each in release.representations.items():
        try:
            digest_and_length = _digest(store, each["object"])
        except VaultError:
            yield f"the representation {name} is missing"
        except CorevaultError:
            yield f"the representation {name} cannot be read"
        except (KeyError, TypeError):
            yield "the row's representations are malformed"
        else:
            if digest_and_length != (each["sha256"], each["length"]):
                yield f"the bytes of the representation {name} differ from the recorded digest or length"


def _digest(store: ObjectStore, name: str) -> tuple[str, int]:
    digest, length = hashlib.sha256(), 0
    with store.open(name) as file:
        while data := file.read(_CHUNK):
            digest.update(data)
            length += len(data)
    return digest.hexdigest(), length
