"""``/docs/guide/``: the pages of the documentation site. They need no API key."""

from typing import Final

from fastapi import APIRouter, Depends, Request
from fastapi.responses import RedirectResponse, Response

from app.errors import NotFound
from app.http.guide.site import find_media_type
from app.http.requests.routing import Route

PREFIX: Final = "/docs/guide"
_NO_SITE: Final = (
    "This server has no documentation site. Its operator can build one with make docs, and set COREVAULT_GUIDE_DIR to "
    "its folder. The reference of the API is at /docs."
)
_NO_PAGE: Final = "The documentation site has no such page. Start at /docs/guide/."
router = APIRouter(route_class=Route, include_in_schema=False)


@router.get(PREFIX)
def redirect_to_index() -> Response:
    """Lead to the first page; links in it are relative to its folder."""
    return RedirectResponse(f"{PREFIX}/", 308)


def accept_links(v: str = "", q: str = "", check_keywords: str = "", area: str = "", highlight: str = "") -> None:
    """Accept the query parameters of links in the site: versions of its files, and its search, which scripts read."""


@router.get(f"{PREFIX}/{{address:path}}", dependencies=[Depends(accept_links)])
def read_file(request: Request, address: str) -> Response:
    """Answer with a file of the site."""
    site = request.app.state.guide
    if site is None:
        raise NotFound(_NO_SITE)
    path = site.find(address)
    if path is None:
        raise NotFound(_NO_PAGE)
    content = site.read(path)
    headers = {
        "Content-Security-Policy": site.find_policy(path, content),
        "X-Content-Type-Options": "nosniff",
        "Referrer-Policy": "same-origin",
        "Cache-Control": "no-cache",
    }
    return Response(content, media_type=find_media_type(path), headers=headers)
