"""``client.releases``: published releases. Public ones need no API key."""

import warnings
from collections.abc import Iterable, Mapping
from typing import Any, TypeVar

from corevault._arguments import describe
from corevault._http import Http, quote_segment
from corevault._ids import read_id
from corevault.belief import Belief, read_belief
from corevault.errors import InvalidArgument, WrongType
from corevault.pages import Page, fetch_page
from corevault.pseudocoreset import Pseudocoreset, UntrustedRelease, from_npz
from corevault.replies.dataset import Dataset
from corevault.replies.key import SigningKey
from corevault.replies.release import Certificate, Points, Release, Representation, StoredBelief
from corevault.verification import BELIEF_FORMATS, FORMATS, certified_digests, read_pins, verify_release

Stored = TypeVar("Stored", bound=Representation)

_UNTRUSTED = (
    "The release is marked as not trusted: it should not be used as a posterior. core.release.diagnostics give the "
    "reason. If the points do not represent every direction, request a larger size. Otherwise use more epsilon, more "
    "slots or fewer features."
)
_GRADES = {
    "centre-only": "its centre may be used, as for predictions, but its intervals may not",
    "not-usable": "neither its centre nor its intervals may be used",
}


class Releases:
    """Published pseudocoresets and their certificates."""

    def __init__(self, http: Http) -> None:
        self._http = http

    def list(self, *, dataset_id: str | Dataset | None = None, limit: int | None = None) -> Page[Release]:
        """Releases, newest first."""
        about = None if dataset_id is None else read_id(dataset_id, Dataset)
        return fetch_page(self._http, "/v1/releases", Release, {"dataset_id": about, "limit": limit})

    def get(self, release_id: str | Release) -> Release:
        """The metadata of a release: model, design, cost, diagnostics."""
        return Release.from_json(self._http.get(f"/v1/releases/{quote_segment(read_id(release_id, Release))}"))

    def points(self, release_id: str | Release, format: str = "npz") -> Points:  # noqa: A002 - the API's word
        """One stored representation: ``json``, ``csv``, ``parquet`` or ``npz``, byte for byte and unverified."""
        if format not in FORMATS:
            raise InvalidArgument(f"format must be one of {', '.join(FORMATS)}.")
        return self._fetch(Points, release_id, "points", format)

    def belief(self, release: str | Release, *, pinned_keys: Iterable[str | SigningKey] | None = None) -> Belief:
        """The verified belief: the distribution of the noise, and the posterior if the method releases one.

        ``download`` reads it too, as ``core.belief``.

        Raises ``VerificationError``, as ``verify`` does, and ``NotFound`` for a release of an earlier version.
        """
        pins = read_pins(pinned_keys)
        metadata = release if isinstance(release, Release) else self.get(release)
        stored = self._stored_belief(metadata, "npz")
        self._verify(metadata, self.certificate(metadata.id), [stored], pins)
        return read_belief(stored.content)

    def certificate(self, release_id: str | Release) -> Certificate:
        """The signed certificate, unverified."""
        return Certificate.from_json(
            self._http.get(f"/v1/releases/{quote_segment(read_id(release_id, Release))}/certificate")
        )

    def signing_keys(self) -> Page[SigningKey]:
        """The published verification keys."""
        return fetch_page(self._http, "/v1/keys", SigningKey, {})

    def verify(
        self,
        release: str | Release,
        *,
        pinned_keys: Iterable[str | SigningKey] | None = None,
        formats: Iterable[str] = FORMATS,
    ) -> Mapping[str, Any]:
        """Downloads ``formats`` of points and belief, and verifies them; returns the verified statement.

        ``pinned_keys`` are public keys in base64 from another source, or objects of an earlier ``signing_keys()``.
        Without them the server's published keys are trusted, which does not protect against the server.

        Raises ``VerificationError``, and ``InvalidArgument`` if ``pinned_keys`` hold no release key.
        """
        if isinstance(formats, str) or not isinstance(formats, Iterable):
            raise WrongType(f"formats must be a list of formats, even for a single one; {describe(formats)}.")
        pins = read_pins(pinned_keys)
        metadata = release if isinstance(release, Release) else self.get(release)
        certificate, names = self.certificate(metadata.id), tuple(formats)
        stored: list[Representation] = [self.points(metadata.id, name) for name in names]
        stored += [self._stored_belief(metadata, name) for name in names if _certifies_belief(certificate, name)]
        return self._verify(metadata, certificate, stored, pins)

    def download(
        self, release: str | Release, *, pinned_keys: Iterable[str | SigningKey] | None = None
    ) -> Pseudocoreset:
        """The verified points, with the verified belief if the release has one.

        Warns with ``UntrustedRelease`` if the release is not calibrated; the text gives the reasons.

        Raises ``VerificationError``, as ``verify`` does.
        """
        pins = read_pins(pinned_keys)
        metadata = release if isinstance(release, Release) else self.get(release)
        certificate, points = self.certificate(metadata.id), self.points(metadata.id, "npz")
        belief = self._stored_belief(metadata, "npz") if _certifies_belief(certificate, "npz") else None
        self._verify(metadata, certificate, [points] if belief is None else [points, belief], pins)
        if metadata.trusted is False:
            warnings.warn(_describe_distrust(metadata), UntrustedRelease, stacklevel=2)
        return from_npz(metadata, points.content, None if belief is None else read_belief(belief.content))

    def _stored_belief(self, release: Release, format: str) -> StoredBelief:  # noqa: A002 - the API's word
        return self._fetch(StoredBelief, release, "belief", format)

    def _fetch(self, kind: type[Stored], release_id: str | Release, part: str, format: str) -> Stored:  # noqa: A002
        address = f"/v1/releases/{quote_segment(read_id(release_id, Release))}/{part}"
        response = self._http.fetch(address, {"format": format}, "*/*")
        headers = response.headers
        return kind(
            format=format,
            content=response.content,
            media_type=headers.get("content-type", ""),
            repr_digest=headers.get("repr-digest"),
            etag=headers.get("etag"),
        )

    def _verify(
        self,
        release: Release,
        certificate: Certificate,
        stored: Iterable[Representation],
        pinned: tuple[str, ...] | None,
    ) -> Mapping[str, Any]:
        published = () if pinned else self.signing_keys()
        return verify_release(release, certificate, stored, published=published, pinned=pinned)


def _certifies_belief(certificate: Certificate, format: str) -> bool:  # noqa: A002 - the API's word
    """Whether the certificate has a digest of the belief. So a server cannot withhold it unnoticed."""
    return format in BELIEF_FORMATS and f"belief.{format}" in certified_digests(certificate.statement)


def _describe_distrust(release: Release) -> str:
    reliability = release.reliability
    if reliability is None:
        return _UNTRUSTED
    use = _GRADES.get(reliability.grade, "see core.release.reliability")
    reasons = " ".join(f"{reason.words} ({reason.code})" for reason in reliability.reasons)
    return f"The release is {reliability.grade}: {use}. {reasons}".rstrip()
