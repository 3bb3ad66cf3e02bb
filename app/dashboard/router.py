"""The routes of all pages."""

from typing import Final

from starlette.responses import RedirectResponse, Response

from app.dashboard import assets
from app.dashboard.pages import (
    audit_log,
    dataset,
    declare,
    deletion,
    jobs,
    keys,
    population,
    populations,
    price,
    provider_sign_in,
    release_files,
    releases,
    sign_in,
    system,
    upload,
    upload_calls,
    what_if,
)
from app.dashboard.rendering import PREFIX
from app.dashboard.routing import make_page_router
from app.dashboard.visitors import MaybeVisitor
from app.errors import NotFound

PAGES: Final = (
    sign_in,
    provider_sign_in,
    populations,
    population,
    what_if,
    dataset,
    declare,
    deletion,
    upload,
    upload_calls,
    price,
    jobs,
    releases,
    release_files,
    audit_log,
    keys,
    system,
)
router = make_page_router()
for page in PAGES:
    router.routes.extend(page.router.routes)


@router.get("/static/{address}")
def read_asset(address: str) -> Response:
    """Answer with the stylesheet or the icon."""
    return assets.answer(address)


@router.get("/")
def redirect_to_first_page() -> Response:
    """Lead from the address with a slash to the first page."""
    return RedirectResponse(PREFIX, 308)


@router.get("/{address:path}")
def refuse_unknown(_: MaybeVisitor) -> Response:
    """Refuse an unknown address below the dashboard."""
    raise NotFound("There is no such page. Check the address, or start at the dashboard's first page.")
