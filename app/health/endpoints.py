"""``/``, ``/health/live``, ``/health/ready`` and ``/metrics``."""

from ipaddress import ip_address
from typing import Final, Literal

from fastapi import Request
from fastapi.responses import Response
from pydantic import BaseModel, ConfigDict

from app.auth.caller import MaybeCaller
from app.datasets.access import OVERSEERS
from app.errors import Forbidden, NotFound, Unauthenticated
from app.health.metrics import Metrics
from app.health.readiness import Readiness
from app.http.errors.openapi import problem_responses
from app.http.requests.routing import api_router

EXPOSITION: Final = "text/plain; version=0.0.4; charset=utf-8"
_EXAMPLE: Final = 'corevault_http_requests_total{method="GET",route="/v1/me",status="200"} 3.0'
_ABOUT: Final = (
    "A privacy wall as a service: analysts get differentially private summaries (Bayesian pseudocoresets) of tables "
    "that nobody can read back. Send an API key as 'Authorization: Bearer cv_…'; the links here need none."
)
_LINKS: Final = {
    "documentation": "/openapi.json",
    "readiness": "/health/ready",
    "releases": "/v1/releases",
    "verification_keys": "/v1/keys",
}
_FORWARDED: Final = ("forwarded", "x-forwarded-for", "x-real-ip", "via")
router = api_router("", "operations")


class Health(BaseModel):
    """Nothing stands in the way; ``without`` names what is away and can be done without for a while."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"status": "ok"}, {"status": "degraded", "without": ["broker"]}]}
    )

    status: Literal["ok", "degraded"] = "ok"
    without: tuple[str, ...] | None = None


class Welcome(BaseModel):
    """What answers here, and where to read on."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"name": "Corevault", "about": _ABOUT, "links": {**_LINKS}}]}
    )

    name: str = "Corevault"
    about: str = _ABOUT
    links: dict[str, str] = _LINKS


@router.get("/")
def welcome() -> Welcome:
    """What this server is, and the addresses that need no API key."""
    return Welcome()


@router.get("/health/live", response_model_exclude_none=True)
def live() -> Health:
    """The process answers."""
    return Health()


@router.get("/health/ready", response_model_exclude_none=True, responses=problem_responses("dependency_unavailable"))
def ready(request: Request) -> Health:
    """Database, migrations, ledger, its mark and the store are as they should be; so is the broker, or it is named."""
    readiness = request.app.state.readiness
    assert isinstance(readiness, Readiness)
    without = readiness.check()
    return Health(status="degraded", without=without) if without else Health()


@router.get(
    "/metrics",
    response_class=Response,
    responses={
        200: {"content": {"text/plain": {"schema": {"type": "string"}, "example": _EXAMPLE}}},
        **problem_responses("unauthenticated", "forbidden", "not_found"),
    },
)
def metrics(request: Request, caller: MaybeCaller) -> Response:
    """Prometheus metrics. An internal address reads them too: all of them with a key of an admin or auditor.

    Without such a key it sees only whether the service works, and calls of addresses that answer everybody alike.
    """
    found = request.app.state.metrics
    if not isinstance(found, Metrics):
        raise NotFound
    if not is_internal(request):
        if caller is None:
            raise Unauthenticated
        if caller.role != "admin":
            raise Forbidden.to(caller.role, ("admin",))
    shows_all = caller is not None and caller.role in OVERSEERS
    return Response(
        found.text() if shows_all else found.public_text(), media_type=EXPOSITION, headers={"Cache-Control": "no-store"}
    )


def is_internal(request: Request) -> bool:
    """Whether the request comes straight from a loopback or private address.

    What a proxy passed on counts as external: then the peer's address says nothing about the caller.
    """
    if request.client is None or any(name in request.headers for name in _FORWARDED):
        return False
    try:
        address = ip_address(request.client.host)
    except ValueError:
        return False
    return address.is_loopback or address.is_private
