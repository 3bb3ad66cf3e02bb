"""``client.releases``: published releases. Public ones need no API key."""

import warnings
from collections.abc import Iterable, Mapping
from typing import Any

from corevault._arguments import describe
from corevault._http import Http, quote_segment
from corevault._ids import id_of
from corevault.errors import InvalidArgument, WrongType
from corevault.pages import Page, fetch_page
from corevault.pseudocoreset import Pseudocoreset, UntrustedRelease, from_npz
from corevault.replies.dataset import Dataset
from corevault.replies.key import SigningKey
from corevault.replies.release import Certificate, Points, Release
from corevault.verification import FORMATS, read_pins, verify_release

_UNTRUSTED = (
    "The release is marked as not trusted: it should not be used as a posterior. core.release.diagnostics give the "
    "reason. If the points do not represent every direction, request a larger size. Otherwise use more epsilon, more "
    "slots or fewer features."
)


class Releases:
    """Published pseudocoresets and their certificates."""

    def __init__(self, http: Http) -> None:
        self._http = http

    def list(self, *, dataset_id: str | Dataset | None = None, limit: int | None = None) -> Page[Release]:
        """Releases, newest first."""
        about = None if dataset_id is None else id_of(dataset_id, Dataset)
        return fetch_page(self._http, "/v1/releases", Release, {"dataset_id": about, "limit": limit})

    def get(self, release_id: str | Release) -> Release:
        """The metadata of a release: model, design, cost, diagnostics."""
        return Release.from_json(self._http.get(f"/v1/releases/{quote_segment(id_of(release_id, Release))}"))

    def points(self, release_id: str | Release, format: str = "npz") -> Points:  # noqa: A002 - the API's word
        """One stored representation: ``json``, ``csv``, ``parquet`` or ``npz``, byte for byte and unverified."""
        if format not in FORMATS:
            raise InvalidArgument(f"format must be one of {', '.join(FORMATS)}.")
        response = self._http.fetch(
            f"/v1/releases/{quote_segment(id_of(release_id, Release))}/points", {"format": format}, "*/*"
        )
        headers = response.headers
        return Points(
            format=format,
            content=response.content,
            media_type=headers.get("content-type", ""),
            repr_digest=headers.get("repr-digest"),
            etag=headers.get("etag"),
        )

    def certificate(self, release_id: str | Release) -> Certificate:
        """The signed certificate, unverified."""
        return Certificate.from_json(
            self._http.get(f"/v1/releases/{quote_segment(id_of(release_id, Release))}/certificate")
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
        """Downloads ``formats`` and verifies them with the certificate; returns the verified statement.

        ``pinned_keys`` are public keys in base64 from another source, or objects of an earlier ``signing_keys()``.
        Without them the server's published keys are trusted, which does not protect against the server.

        Raises ``VerificationError``, and ``InvalidArgument`` if ``pinned_keys`` hold no release key.
        """
        if isinstance(formats, str) or not isinstance(formats, Iterable):
            raise WrongType(f"formats must be a list of formats, even for a single one; {describe(formats)}.")
        pins = read_pins(pinned_keys)
        metadata = release if isinstance(release, Release) else self.get(release)
        points = [self.points(metadata.id, name) for name in formats]
        return self._verify(metadata, points, pins)

    def download(
        self, release: str | Release, *, pinned_keys: Iterable[str | SigningKey] | None = None
    ) -> Pseudocoreset:
        """The verified points. Raises ``VerificationError``, as ``verify`` does.

        Warns with ``UntrustedRelease`` if ``release.trusted`` is False.
        """
        pins = read_pins(pinned_keys)
        metadata = release if isinstance(release, Release) else self.get(release)
        points = self.points(metadata.id, "npz")
        self._verify(metadata, [points], pins)
        if metadata.trusted is False:
            warnings.warn(_UNTRUSTED, UntrustedRelease, stacklevel=2)
        return from_npz(metadata, points.content)

    def _verify(self, release: Release, points: Iterable[Points], pinned: tuple[str, ...] | None) -> Mapping[str, Any]:
        published = () if pinned else self.signing_keys()
        return verify_release(release, self.certificate(release.id), points, published=published, pinned=pinned)
