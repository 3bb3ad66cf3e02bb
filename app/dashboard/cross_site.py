"""Protection against cross-site request forgery, by headers that only browsers set.

A request that changes something must come from a page of this server. ``Sec-Fetch-Site`` states it, or else ``Origin``
names the host. A request with neither header is refused: every browser that sends a form sends one of them.
"""

from typing import Final
from urllib.parse import urlsplit

from starlette.datastructures import Headers
from starlette.requests import Request

from app.errors import Forbidden

_SAME: Final = frozenset({"same-origin", "none"})
_REFUSAL: Final = "This form was not sent from a page of this server. Open the page here and send the form again."


def check_same_site(request: Request) -> None:
    """Check that the request was sent from a page of this server.

    Raises:
        Forbidden: it was not, or nothing states it.
    """
    if not is_same_site(request.headers):
        raise Forbidden(_REFUSAL)


def is_same_site(headers: Headers) -> bool:
    """Whether ``Sec-Fetch-Site``, or else ``Origin``, states that the request comes from this server."""
    sites, origins = headers.getlist("sec-fetch-site"), headers.getlist("origin")
    if len(sites) > 1 or len(origins) > 1:
        return False
    if sites:
        return sites[0] in _SAME
    return bool(origins) and urlsplit(origins[0]).netloc.lower() == headers.get("host", "").lower() != ""
