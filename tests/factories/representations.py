"""The representations that a release with points and belief has."""

from typing import Final

from app.releases.http.formats import STORED_NAMES, Part

REPRESENTATIONS: Final = tuple(name for part in (Part.POINTS, Part.BELIEF) for name in STORED_NAMES[part].values())
