"""``client.releases``: published releases. Public ones need no API key."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from corevault._arguments import describe
from corevault._http import Http, quote_segment
from corevault._ids import read_id
from corevault._io import blocking
from corevault._names import find_dataset_id
from corevault._warnings import warn_caller
from corevault.errors import InvalidArgument, UnreadableSource, WrongType
from corevault.pages import Page, fetch_page
from corevault.replies.dataset import Dataset
from corevault.replies.key import SigningKey
from corevault.replies.release import Certificate, Points, Release, Representation, StoredBelief, StoredGroups
from corevault.verification import BELIEF_FORMATS, FORMATS, certified_digests, read_pins, verify_release

if TYPE_CHECKING:
    from corevault.belief import Belief
    from corevault.groups import Groups
    from corevault.pseudocoreset import Pseudocoreset

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


class AsyncReleases:
    """The methods of ``Releases`` for an ``AsyncClient``. Each is awaited.

    >>> asyncio.run(async_client.releases.get(release)).size
    20
    """

    def __init__(self, http: Http) -> None:
        self._http = http

    async def list(self, *, dataset_id: str | Dataset | None = None, limit: int | None = None) -> Page[Release]:
        """Releases, newest first.

        >>> release.id in {each.id for each in client.releases.list(dataset_id="clinic")}
        True
        """
        about = None if dataset_id is None else await find_dataset_id(self._http, dataset_id)
        return await fetch_page(self._http, "/v1/releases", Release, {"dataset_id": about, "limit": limit})

    async def get(self, release_id: str | Release) -> Release:
        """The metadata of a release: model, design, cost, diagnostics.

        >>> client.releases.get(release.id).family
        'logistic-regression'
        """
        return Release.from_json(await self._http.get(f"/v1/releases/{quote_segment(read_id(release_id, Release))}"))

    async def points(self, release_id: str | Release, format: str = "npz") -> Points:  # noqa: A002 - the API's word
        """One stored representation: ``json``, ``csv``, ``parquet`` or ``npz``, byte for byte and unverified.

        >>> client.releases.points(release, "csv").content.decode().splitlines()[0]
        'age,sex=male,intercept,y,weight'
        """
        if format not in FORMATS:
            raise InvalidArgument(f"format must be one of {', '.join(FORMATS)}.")
        return await self._fetch(Points, release_id, "points", format)

    async def belief(
        self, release: str | Release, *, pinned_keys: Iterable[str | SigningKey] | None = None
    ) -> "Belief":
        """The verified belief: the distribution of the noise, and the posterior if the method releases one.

        ``download`` reads it too, as ``core.belief``.

        Raises ``VerificationError``, as ``verify`` does, and ``NotFound`` for a release of an earlier version.

        >>> client.releases.belief(release).noise.names
        ('age', 'sex=male', 'intercept')
        """
        pins = read_pins(pinned_keys)
        metadata = release if isinstance(release, Release) else await self.get(release)
        stored = await self._stored_belief(metadata, "npz")
        await self._verify(metadata, await self.certificate(metadata.id), [stored], pins)
        return await self._http.call(_read_belief, stored.content)

    async def groups(
        self, release: str | Release, *, pinned_keys: Iterable[str | SigningKey] | None = None
    ) -> "Groups":
        """The verified weights of groups, which the method ``dp-groups`` releases.

        Raises ``VerificationError``, as ``verify`` does, and ``NotFound`` for a release of another method.

        >>> client.releases.groups(groups_release).labels
        (('female',), ('male',))
        """
        pins = read_pins(pinned_keys)
        metadata = release if isinstance(release, Release) else await self.get(release)
        stored = await self._fetch(StoredGroups, metadata, "groups", "npz")
        await self._verify(metadata, await self.certificate(metadata.id), [stored], pins)
        return await self._http.call(_read_groups, stored.content)

    async def certificate(self, release_id: str | Release) -> Certificate:
        """The signed certificate, unverified.

        >>> client.releases.certificate(release).statement["size"]
        20
        """
        return Certificate.from_json(
            await self._http.get(f"/v1/releases/{quote_segment(read_id(release_id, Release))}/certificate")
        )

    async def signing_keys(self) -> Page[SigningKey]:
        """The published verification keys.

        >>> sorted(key.use for key in client.releases.signing_keys())
        ['ledger', 'release']
        """
        return await fetch_page(self._http, "/v1/keys", SigningKey, {})

    async def verify(
        self,
        release: str | Release,
        *,
        pinned_keys: Iterable[str | SigningKey] | None = None,
        formats: Iterable[str] = FORMATS,
    ) -> Mapping[str, Any]:
        """Downloads ``formats`` of points, belief and groups, and verifies them; returns the verified statement.

        ``pinned_keys`` are public keys in base64 from another source, or objects of an earlier ``signing_keys()``.
        Without them the server's published keys are trusted, which does not protect against the server.

        Raises ``VerificationError``, and ``InvalidArgument`` if ``pinned_keys`` hold no release key.

        >>> keys = list(client.signing_keys())  # stored earlier
        >>> client.releases.verify(release, pinned_keys=keys)["relation"]
        'zero_out'
        """
        if isinstance(formats, str) or not isinstance(formats, Iterable):
            raise WrongType(f"formats must be a list of formats, even for a single one; {describe(formats)}.")
        pins = read_pins(pinned_keys)
        metadata = release if isinstance(release, Release) else await self.get(release)
        certificate, names = await self.certificate(metadata.id), tuple(formats)
        has_points = _certifies_points(certificate)
        stored: list[Representation] = [await self.points(metadata.id, name) for name in names if has_points]
        stored += [await self._stored_belief(metadata, name) for name in names if _certifies_belief(certificate, name)]
        for name in names:
            if f"groups.{name}" in certified_digests(certificate.statement):
                stored.append(await self._fetch(StoredGroups, metadata, "groups", name))
        return await self._verify(metadata, certificate, stored, pins)

    async def download(
        self, release: str | Release, *, pinned_keys: Iterable[str | SigningKey] | None = None
    ) -> "Pseudocoreset":
        """The verified points, with the verified belief if the release has one.

        Warns with ``UntrustedRelease`` if the release is not calibrated; the text gives the reasons.

        Raises ``VerificationError``, as ``verify`` does, and ``InvalidArgument`` for a belief without points.

        >>> client.releases.download(release).u.shape
        (20, 3)
        """
        pins = read_pins(pinned_keys)
        metadata = release if isinstance(release, Release) else await self.get(release)
        certificate = await self.certificate(metadata.id)
        _check_points(certificate, metadata.id)
        points = await self.points(metadata.id, "npz")
        belief = await self._stored_belief(metadata, "npz") if _certifies_belief(certificate, "npz") else None
        await self._verify(metadata, certificate, [points] if belief is None else [points, belief], pins)
        _warn(metadata)
        return await self._http.call(_read_release, metadata, points, belief)

    async def save(
        self,
        release: str | Release,
        path: str | Path,
        *,
        pinned_keys: Iterable[str | SigningKey] | None = None,
    ) -> Release:
        """Writes the verified points to a file, byte for byte as they are certified.

        The suffix selects the representation: ``.csv``, ``.parquet``, ``.json`` or ``.npz``. A release without points
        is saved as its weights of groups, or as its belief. Warns as ``download`` does.

        Raises ``VerificationError`` before anything is written, ``UnreadableSource`` if the file cannot be written, and
        ``InvalidArgument`` for ``.csv`` without points.

        >>> client.releases.save(release, "points.csv").id == release.id
        True
        """
        name, pins = find_points_format(path), read_pins(pinned_keys)
        metadata = release if isinstance(release, Release) else await self.get(release)
        certificate = await self.certificate(metadata.id)
        part, kind = _find_main_part(certificate, name)
        stored = await self._fetch(kind, metadata, part, name)
        await self._verify(metadata, certificate, [stored], pins)
        _warn(metadata)
        try:
            await self._http.call(Path(path).write_bytes, stored.content)
        except OSError as error:
            raise UnreadableSource(f"{path} cannot be written; pass a path in a folder that you may use.") from error
        return metadata

    async def _stored_belief(self, release: Release, format: str) -> StoredBelief:  # noqa: A002 - the API's word
        return await self._fetch(StoredBelief, release, "belief", format)

    async def _fetch(self, kind: type[Stored], release_id: str | Release, part: str, format: str) -> Stored:  # noqa: A002
        address = f"/v1/releases/{quote_segment(read_id(release_id, Release))}/{part}"
        response = await self._http.fetch(address, {"format": format}, "*/*")
        headers = response.headers
        return kind(
            format=format,
            content=response.content,
            media_type=headers.get("content-type", ""),
            repr_digest=headers.get("repr-digest"),
            etag=headers.get("etag"),
        )

    async def _verify(
        self,
        release: Release,
        certificate: Certificate,
        stored: Iterable[Representation],
        pinned: tuple[str, ...] | None,
    ) -> Mapping[str, Any]:
        published = () if pinned else [key async for key in await self.signing_keys()]
        return verify_release(release, certificate, stored, published=published, pinned=pinned)


class Releases:
    """Published pseudocoresets and their certificates.

    >>> client.releases.get(release.id).size
    20
    """

    def __init__(self, calls: AsyncReleases) -> None:
        self._calls = calls

    list = blocking(AsyncReleases.list)
    get = blocking(AsyncReleases.get)
    points = blocking(AsyncReleases.points)
    belief = blocking(AsyncReleases.belief)
    groups = blocking(AsyncReleases.groups)
    certificate = blocking(AsyncReleases.certificate)
    signing_keys = blocking(AsyncReleases.signing_keys)
    verify = blocking(AsyncReleases.verify)
    download = blocking(AsyncReleases.download)
    save = blocking(AsyncReleases.save)


def find_points_format(path: str | Path) -> str:
    """The representation of the points that a file's suffix names. Raises ``InvalidArgument`` for another suffix."""
    if not isinstance(path, str | Path):
        raise WrongType(f"path must be text or a Path; {describe(path)}.")
    suffix = Path(path).suffix.lower().removeprefix(".")
    if suffix not in FORMATS:
        raise InvalidArgument(f"The file's name must end in one of .{', .'.join(FORMATS)}.")
    return suffix


def _warn(release: Release) -> None:
    from corevault.pseudocoreset import UntrustedRelease  # noqa: PLC0415 - SciPy is imported when it is needed

    if release.trusted is False:
        warn_caller(_describe_distrust(release), UntrustedRelease)


def _read_belief(content: bytes) -> "Belief":
    from corevault.belief import read_belief  # noqa: PLC0415 - SciPy is imported when it is needed

    return read_belief(content)


def _read_groups(content: bytes) -> "Groups":
    from corevault.groups import read_groups  # noqa: PLC0415 - SciPy is imported when it is needed

    return read_groups(content)


def _read_release(release: Release, points: Points, belief: StoredBelief | None) -> "Pseudocoreset":
    from corevault.pseudocoreset import from_npz  # noqa: PLC0415 - SciPy is imported when it is needed

    return from_npz(release, points.content, None if belief is None else _read_belief(belief.content))


def _certifies_belief(certificate: Certificate, format: str) -> bool:  # noqa: A002 - the API's word
    """Whether the certificate has a digest of the belief. So a server cannot withhold it unnoticed."""
    return format in BELIEF_FORMATS and f"belief.{format}" in certified_digests(certificate.statement)


def _certifies_points(certificate: Certificate) -> bool:
    """Whether the release has points. A belief without points, or groups, have digests of these only."""
    digests = certified_digests(certificate.statement)
    return "npz" in digests or digests.keys().isdisjoint({"belief.npz", "groups.npz"})


def _check_points(certificate: Certificate, release_id: str) -> None:
    """Raises with the release's id, because a caller of ``buy`` may not know it."""
    if "groups.npz" in certified_digests(certificate.statement):
        raise InvalidArgument(
            f"Release {release_id} has weights of groups. Read them with client.releases.groups({release_id!r})."
        )
    if not _certifies_points(certificate):
        raise InvalidArgument(
            f"Release {release_id} is a belief without points. Read it with client.releases.belief({release_id!r})."
        )


def _find_main_part(certificate: Certificate, format: str) -> tuple[str, type[Representation]]:  # noqa: A002
    """Find the part that is saved: points, else groups, else the belief."""
    if _certifies_points(certificate):
        return "points", Points
    if format not in BELIEF_FORMATS:
        raise InvalidArgument(f"This release has no points. Save it as .{', .'.join(BELIEF_FORMATS)}.")
    if f"groups.{format}" in certified_digests(certificate.statement):
        return "groups", StoredGroups
    return "belief", StoredBelief


def _describe_distrust(release: Release) -> str:
    reliability = release.reliability
    if reliability is None:
        return _UNTRUSTED
    use = _GRADES.get(reliability.grade, "see core.release.reliability")
    reasons = " ".join(f"{reason.words} ({reason.code})" for reason in reliability.reasons)
    return f"The release is {reliability.grade}: {use}. {reasons}".rstrip()
