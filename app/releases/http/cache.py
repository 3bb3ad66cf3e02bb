"""In-memory caches of public releases.

A release never changes, and a public release stays public. So no cached value becomes stale.
"""

from typing import Final

from app.recently_used import LeastRecentlyUsed
from app.releases.http.formats import Part
from app.releases.http.representation import Offers
from app.releases.models import Release

RELEASES: Final = 4_096
"""Largest number of cached offers: lists of the formats of a part of a release."""
BYTES: Final = 64 * 2**20
"""Largest size of all cached representations together."""
LARGEST: Final = 4 * 2**20
"""Largest size of one cached representation, in bytes."""


class PublicReleases:
    """A cache of public releases: the offers of each part, and the bytes of small representations.

    The parts of a release are its points, its belief and its groups. The offers of a part are its formats. Offers
    are found by release and part, and bytes by the name of the stored object. A method returns None for a value that is
    not cached.
    """

    def __init__(self) -> None:
        self._offers = LeastRecentlyUsed[str, Offers](RELEASES)
        self._bodies = LeastRecentlyUsed[str, bytes](BYTES)

    def offers(self, release_id: str, part: Part) -> Offers | None:
        return self._offers.get(f"{release_id}/{part}")

    def remember(self, release: Release, part: Part) -> Offers:
        """Return the offers of ``part``, and cache them if the release is public.

        Raises:
            NotFound: the release has no such part.
        """
        offers = Offers.of(release, part)
        if release.public:
            self._offers.put(f"{release.id}/{part}", offers)
        return offers

    def body(self, name: str) -> bytes | None:
        return self._bodies.get(name)

    def remember_body(self, name: str, content: bytes) -> None:
        if len(content) <= LARGEST:
            self._bodies.put(name, content, len(content))
