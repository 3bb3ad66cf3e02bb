"""``GET /v1/methods``."""

from app.auth.caller import AnyCaller
from app.catalogue import service
from app.catalogue.schemas import Catalogue
from app.http.requests.routing import make_router

router = make_router("/v1/methods", "methods", "unauthenticated", "dependency_unavailable")


@router.get("")
def list_methods(_: AnyCaller) -> Catalogue:
    """List methods and model families. Each method states whether it may run on private data."""
    return service.make_catalogue()
