"""The files of a private release, for visitors who are signed in.

The API serves public files without a key, so their pages link to it.
"""

from collections.abc import Iterator

from starlette.responses import JSONResponse, Response

from app.dashboard.rendering import PREFIX
from app.dashboard.routing import make_page_router
from app.dashboard.visitors import MaybeVisitor
from app.errors import NotFound
from app.releases import service
from app.releases.http.formats import STORED_NAMES, Part
from app.releases.http.representation import Offers
from app.releases.models import Release
from app.services import Shared

CERTIFICATE = "certificate.json"
router = make_page_router()


def list_files(release: Release) -> Iterator[tuple[str, str, str]]:
    """List address, part and format of each file."""
    for part, names in STORED_NAMES.items():
        for name, stored in names.items():
            if stored in release.representations:
                address = f"/v1/releases/{release.id}/{part}?format={name}"
                yield (address if release.public else _address(release, f"{part}.{name}")), str(part), name


def find_certificate(release: Release) -> str:
    """Return the address of the signed statement."""
    return f"/v1/releases/{release.id}/certificate" if release.public else _address(release, CERTIFICATE)


@router.get("/releases/{release_id}/files/{name}")
def download_file(services: Shared, visitor: MaybeVisitor, release_id: str, name: str) -> Response:
    """Download one file of a release that the visitor may read."""
    with services.database.read() as session:
        release = service.find_readable(session, visitor, release_id)
    saved_as = {"Content-Disposition": f'attachment; filename="{release_id}-{name}"'}
    if name == CERTIFICATE:
        return JSONResponse(release.certificate, headers=saved_as)
    part, _, format_name = name.partition(".")
    if part not in set(Part) or (found := Offers.of(release, Part(part)).by_format.get(format_name)) is None:
        raise NotFound
    store = services.areas.released
    with store.open(found.object) as file:
        return Response(file.read(), headers={**found.headers, **saved_as})


def _address(release: Release, name: str) -> str:
    return f"{PREFIX}/releases/{release.id}/files/{name}"
