"""``client.releases``: what is public. No key is needed for releases of datasets that publish them."""

import warnings
from collections.abc import Iterable, Mapping
from typing import Any

from corevault._arguments import what_came
from corevault._http import Http, segment
from corevault._ids import id_of
from corevault.errors import InvalidArgument, WrongType
from corevault.pages import Page, fetch_page
from corevault.pseudocoreset import Pseudocoreset, UntrustedRelease, from_npz
from corevault.replies.dataset import Dataset
from corevault.replies.key import SigningKey
from corevault.replies.release import Certificate, Points, Release
from corevault.verification import FORMATS, pins_of, verify_release

_UNTRUSTED = (
    "This release says that it should not be used as a posterior (trusted: false). Its diagnostics say why: where it "
    "does not represent every direction a larger size helps, otherwise more epsilon, more slots or fewer features."
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
        """The metadata: model, design, cost, diagnostics."""
        return Release.from_json(self._http.get(f"/v1/releases/{segment(id_of(release_id, Release))}"))

    def points(self, release_id: str | Release, format: str = "npz") -> Points:  # noqa: A002 - the API's own word
        """One stored representation, ``json``, ``csv``, ``parquet`` or ``npz``, byte for byte and unverified."""
        if format not in FORMATS:
            raise InvalidArgument(f"format must be one of {', '.join(FORMATS)}.")
        response = self._http.fetch(
            f"/v1/releases/{segment(id_of(release_id, Release))}/points", {"format": format}, "*/*"
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
        return Certificate.from_json(self._http.get(f"/v1/releases/{segment(id_of(release_id, Release))}/certificate"))

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

        Without ``pinned_keys`` the server's published keys are trusted, which does not protect against the server
        itself. ``pinned_keys`` are public keys that you got elsewhere (base64), or that ``signing_keys()`` returned
        earlier. Raises ``VerificationError``, and ``InvalidArgument`` where ``pinned_keys`` hold no release key.
        """
        if isinstance(formats, str) or not isinstance(formats, Iterable):
            raise WrongType(f"formats must be a list of formats, also for one; {what_came(formats)}.")
        pins = pins_of(pinned_keys)
        known = release if isinstance(release, Release) else self.get(release)
        points = [self.points(known.id, name) for name in formats]
        return self._verify(known, points, pins)

    def download(
        self, release: str | Release, *, pinned_keys: Iterable[str | SigningKey] | None = None
    ) -> Pseudocoreset:
        """The points, verified; raises ``VerificationError`` as ``verify`` does.

        Warns with ``UntrustedRelease`` where the release says that it should not be used as a posterior.
        """
        pins = pins_of(pinned_keys)
        known = release if isinstance(release, Release) else self.get(release)
        points = self.points(known.id, "npz")
        self._verify(known, [points], pins)
        if known.trusted is False:
            warnings.warn(_UNTRUSTED, UntrustedRelease, stacklevel=2)
        return from_npz(known, points.content)

    def _verify(self, release: Release, points: Iterable[Points], pinned: tuple[str, ...] | None) -> Mapping[str, Any]:
        published = () if pinned else self.signing_keys()
        return verify_release(release, self.certificate(release.id), points, published=published, pinned=pinned)
