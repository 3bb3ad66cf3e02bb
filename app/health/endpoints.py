"""``/``, ``/docs``, ``/health/live``, ``/health/ready`` and ``/metrics``."""

from ipaddress import ip_address
from typing import Final, Literal

from fastapi import Request
from fastapi.responses import Response
from pydantic import ConfigDict

from app.auth.caller import MaybeCaller
from app.datasets.access import OVERSEERS
from app.errors import Forbidden, NotFound, Unauthenticated
from app.health.metrics import Metrics
from app.health.readiness import Readiness
from app.http.errors.openapi import make_problem_responses
from app.http.reference.page import POLICY, render_page
from app.http.requests.bodies import ResponseBody
from app.http.requests.routing import make_router

EXPOSITION: Final = "text/plain; version=0.0.4; charset=utf-8"
_EXAMPLE: Final = 'corevault_http_requests_total{method="GET",route="/v1/me",status="200"} 3.0'
_ABOUT: Final = (
    "A privacy wall as a service: analysts get differentially private summaries (Bayesian pseudocoresets) of tables "
    "that no caller can read. Send an API key as 'Authorization: Bearer cv_…'; the links here need none."
)
_LINKS: Final = {
    "documentation": "/openapi.json",
    "reference": "/docs",
    "readiness": "/health/ready",
    "releases": "/v1/releases",
    "verification_keys": "/v1/keys",
}
_FORWARDED: Final = ("forwarded", "x-forwarded-for", "x-real-ip", "via")
router = make_router("", "operations")


class Health(ResponseBody):
    """The state of this process and of its dependencies."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"status": "ok"}, {"status": "degraded", "without": ["broker"]}]}
    )

    status: Literal["ok", "degraded"] = "ok"
    """`ok`: everything works. `degraded`: calls work, but the dependencies in `without` do not answer."""
    without: tuple[str, ...] | None = None
    """Dependencies that do not answer, and without which calls still work; absent if there are none."""


class Welcome(ResponseBody):
    """A short description of the service, and links."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"name": "Corevault", "about": _ABOUT, "links": {**_LINKS}}]}
    )

    name: str = "Corevault"
    """Name of the service."""
    about: str = _ABOUT
    """Purpose of the service, and how to authenticate."""
    links: dict[str, str] = _LINKS
    """Addresses that need no API key."""


@router.get("/")
def describe_service() -> Welcome:
    """Describe the service and list the addresses that need no API key."""
    return Welcome()


@router.get(
    "/docs",
    response_class=Response,
    responses={200: {"content": {"text/html": {"schema": {"type": "string"}, "example": "<!doctype html>…"}}}},
)
def read_reference(request: Request) -> Response:
    """Read the reference page of the API, for people. It has no scripts, and loads nothing from other addresses."""
    state = request.app.state
    if not hasattr(state, "reference"):
        state.reference = render_page(request.app.openapi(), has_guide=state.guide is not None)
    headers = {"Content-Security-Policy": POLICY, "X-Content-Type-Options": "nosniff", "Cache-Control": "no-cache"}
    return Response(state.reference, media_type="text/html; charset=utf-8", headers=headers)


@router.get("/health/live", response_model_exclude_none=True)
def check_liveness() -> Health:
    """Confirm that the process answers requests."""
    return Health()


@router.get(
    "/health/ready", response_model_exclude_none=True, responses=make_problem_responses("dependency_unavailable")
)
def check_readiness(request: Request) -> Health:
    """Check everything that calls depend on.

    The checks cover the database, its migrations, the ledger, its high-water mark, the object store and the broker.
    A broker that does not answer is named in `without`. Any other failure is answered with 503.
    """
    readiness = request.app.state.readiness
    assert isinstance(readiness, Readiness)
    without = readiness.check()
    return Health(status="degraded", without=without) if without else Health()


@router.get(
    "/metrics",
    response_class=Response,
    responses={
        200: {"content": {"text/plain": {"schema": {"type": "string"}, "example": _EXAMPLE}}},
        **make_problem_responses("unauthenticated", "forbidden", "not_found"),
    },
)
def read_metrics(request: Request, caller: MaybeCaller) -> Response:
    """Show metrics in Prometheus's text format, to administrators and to scrapers at internal addresses.

    With the key of an administrator or auditor, the response contains every series. Without such a key, an internal
    address gets only two kinds of series: whether the service works, and requests to public routes.
    """
    metrics = request.app.state.metrics
    if not isinstance(metrics, Metrics):
        raise NotFound
    if not is_internal(request):
        if caller is None:
            raise Unauthenticated
        if caller.role != "admin":
            raise Forbidden.to(caller.role, ("admin",))
    shows_all = caller is not None and caller.role in OVERSEERS
    return Response(
        metrics.text() if shows_all else metrics.public_text(),
        media_type=EXPOSITION,
        headers={"Cache-Control": "no-store"},
    )


def is_internal(request: Request) -> bool:
    """Return whether the request comes directly from a loopback or private address.

    A request that a proxy forwarded counts as external, because the peer's address is then the proxy's.
    """
    if request.client is None or any(name in request.headers for name in _FORWARDED):
        return False
    try:
        address = ip_address(request.client.host)
    except ValueError:
        return False
    return address.is_loopback or address.is_private
