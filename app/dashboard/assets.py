"""The stylesheet, the icon and the scripts of the pages. Browsers may keep them, as addresses contain a digest."""

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from starlette.responses import Response

from app.errors import NotFound

ROOT: Final = Path(__file__).parent
_MEDIA_TYPES: Final = {
    ".css": "text/css; charset=utf-8",
    ".svg": "image/svg+xml",
    ".mjs": "text/javascript; charset=utf-8",
}
_IMPORT: Final = re.compile(rb'(?<= from "\./)([a-z0-9-]+\.mjs)(?=";)')
NAMES: Final = (
    *("corevault.css", "icon.svg"),
    *(
        "cells.mjs",
        "csv.mjs",
        "formats.mjs",
        "sha256.mjs",
        "table-check.mjs",
        "transfer.mjs",
        "ledger-chain.mjs",
        "once.mjs",
        "times.mjs",
    ),
    *("declare.mjs", "live.mjs", "upload.mjs", "verify.mjs"),
)
"""The files. A script follows the scripts that it imports."""


@dataclass(frozen=True, slots=True)
class Asset:
    """A static file; ``address`` is its path below ``/dashboard/static``."""

    address: str
    content: bytes
    media_type: str


def _load(name: str, loaded: Mapping[str, Asset]) -> Asset:
    """Load a file. A script imports others by the addresses with their digests."""
    path = ROOT / "static" / name
    content = _IMPORT.sub(lambda found: loaded[found[1].decode()].address.encode(), path.read_bytes())
    digest = hashlib.sha256(content).hexdigest()[:16]
    return Asset(f"{path.stem}.{digest}{path.suffix}", content, _MEDIA_TYPES[path.suffix])


def _load_all() -> Mapping[str, Asset]:
    loaded: dict[str, Asset] = {}
    for name in NAMES:
        loaded[name] = _load(name, loaded)
    return loaded


ASSETS: Final = _load_all()
_BY_ADDRESS: Final = {asset.address: asset for asset in ASSETS.values()}


def answer(address: str) -> Response:
    """Answer with the static file at ``address``.

    Raises:
        NotFound: there is no such file.
    """
    asset = _BY_ADDRESS.get(address)
    if asset is None:
        raise NotFound
    headers = {"Cache-Control": "public, max-age=31536000, immutable"}
    return Response(asset.content, media_type=asset.media_type, headers=headers)
