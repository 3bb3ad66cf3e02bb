"""Routers of pages. Pages are not part of the API, so the OpenAPI document leaves them out."""

from fastapi import APIRouter

from app.dashboard.rendering import PREFIX
from app.http.requests.routing import Route


class OpenRoute(Route):
    """A route to which another server sends browsers, with any query parameters."""

    refuses_query = False


def make_page_router(route_class: type[Route] = Route) -> APIRouter:
    """Make the router of one page."""
    return APIRouter(prefix=PREFIX, route_class=route_class, include_in_schema=False)
