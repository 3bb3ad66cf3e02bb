"""The composition root of the API: routers, middleware and shared services."""

import base64
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import structlog
from fastapi import APIRouter, FastAPI
from fastapi.exceptions import RequestValidationError
from sqlalchemy.exc import SQLAlchemyError
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware

from app.audit.background_writer import AuditRecorder
from app.audit.endpoints import router as audit_router
from app.auth.endpoints import router as auth_router
from app.auth.service import Keys
from app.budgets.endpoints import router as budgets_router
from app.budgets.population_endpoints import router as populations_router
from app.budgets.what_if_endpoints import router as what_if_router
from app.catalogue.endpoints import router as catalogue_router
from app.config import Settings
from app.dashboard.problem_pages import ProblemPages
from app.dashboard.router import router as dashboard_router
from app.datasets.endpoints import router as datasets_router
from app.datasets.uploads.endpoints import router as uploads_router
from app.db import BackgroundWriter, Database, WriteSession, make_engine
from app.errors import CorevaultError, DependencyUnavailable
from app.health.endpoints import router as health_router
from app.health.gauges import DETECTION_SECONDS, Gauges
from app.health.metrics import Metrics
from app.health.readiness import Readiness
from app.health.workers import router as workers_router
from app.http.errors.openapi import describe
from app.http.errors.problems import answer_domain_error, answer_invalid_input, answer_router_error
from app.http.guide.endpoints import router as guide_router
from app.http.guide.site import open_site
from app.http.middleware.addresses import AllowedHosts, TrustedProxies
from app.http.middleware.head_options_cors import HeadOptionsCors, answer_method_not_allowed
from app.http.middleware.logs import log_exchange
from app.http.middleware.outer_middleware import Exchange, OuterMiddleware
from app.http.middleware.slow_body_guard import LeastRate, SlowBodyGuard
from app.http.rate_limits.rate_windows import Rate, open_windows
from app.http.rate_limits.rates import RateLimits
from app.jobs.endpoints import router as jobs_router
from app.jobs.lifecycle import Lifecycle
from app.jobs.preloading import preload_pricing
from app.ledger import HighWaterMark, Ledger
from app.queue.sender import CeleryQueue
from app.releases.audit import freeze_unaccounted
from app.releases.endpoints import router as releases_router
from app.releases.http.cache import PublicReleases
from app.releases.http.reads import PublicReads
from app.services import Limits, Services, VerificationKey
from app.vault.areas import Areas
from app.vault.keys import load_api_keys
from app.vault.marks import open_marks
from app.vault.signing import Signer, compute_key_id
from app.vault.store import ObjectStore

if TYPE_CHECKING:
    from app.oidc import CodeFlow, TokenVerifier

ROUTERS: tuple[APIRouter, ...] = (
    auth_router,
    datasets_router,
    uploads_router,
    budgets_router,
    populations_router,
    what_if_router,
    catalogue_router,
    jobs_router,
    releases_router,
    audit_router,
    workers_router,
    health_router,
    guide_router,
    dashboard_router,
)


def create_app(
    services: Services,
    *,
    metrics: bool = True,
    metrics_dir: str | None = None,
    hosts: AllowedHosts | None = None,
    least_rate: LeastRate | None = None,
    guide: Path | None = None,
    detection_seconds: float = DETECTION_SECONDS,
) -> FastAPI:
    """Make the ASGI application. It verifies the ledger at start-up.

    Args:
        services: the collaborators of the endpoints.
        metrics: whether ``/metrics`` is served.
        metrics_dir: the folder in which several processes share their counts.
        hosts: allowed values of the Host header; None: all.
        least_rate: lowest accepted rate of request bodies; None: no limit.
        guide: the folder of the documentation site; None: there is none.
        detection_seconds: time within which the continuous audit should detect a small defect.
    """
    counts = Metrics(Gauges(services.database, detection_seconds), shared=metrics_dir) if metrics else None
    recorder = AuditRecorder(services.database, services.signer)
    observers: tuple[Callable[[Exchange], None], ...] = (log_exchange, recorder.observe)
    if counts is not None:
        observers += (counts.observe,)
    app = _make_routed_app()
    cache = PublicReleases()
    app.user_middleware.extend(
        [
            Middleware(ProblemPages),
            Middleware(OuterMiddleware, observers=observers, hosts=hosts),
            Middleware(SlowBodyGuard, least=least_rate),
            Middleware(HeadOptionsCors, routes=app.routes),
            Middleware(PublicReads, releases=cache, read=partial(_read_whole, services.areas.released)),
        ]
    )
    app.add_exception_handler(CorevaultError, answer_domain_error)
    app.add_exception_handler(RequestValidationError, answer_invalid_input)
    app.add_exception_handler(HTTPException, answer_router_error)
    app.add_exception_handler(405, answer_method_not_allowed)
    app.state.services, app.state.body_key = services, services.identity_key
    app.state.metrics, app.state.detection_seconds = counts, detection_seconds
    app.state.guide = open_site(guide)
    app.state.audit_recorder = recorder
    app.state.public_releases = cache
    app.state.readiness = Readiness(services, partial(_audit, services.ledger))
    return app


def describe_api() -> dict[str, Any]:
    """Make the OpenAPI document. It needs no services."""
    return _make_routed_app().openapi()


def _make_routed_app() -> FastAPI:
    app = FastAPI(
        title="Corevault",
        version="1",
        summary="A privacy wall with an exit: differentially private Bayesian pseudocoresets.",
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
        lifespan=_lifespan,
        telemetry={"tracing": False, "metrics": False, "logs": False, "operation_spans": False},
    )
    for router in ROUTERS:
        app.router.routes.extend(router.routes)  # flat, so that every route has its whole path template
    describe(app)
    return app


def _read_whole(store: ObjectStore, name: str) -> bytes:
    with store.open(name) as file:
        return file.read()


def _audit(ledger: Ledger, tx: WriteSession) -> None:
    ledger.verify_and_freeze(tx)
    freeze_unaccounted(tx, ledger)


@asynccontextmanager
async def _lifespan(app: FastAPI) -> AsyncIterator[None]:
    with preload_pricing():
        with suppress(DependencyUnavailable):  # /health/ready reports it, and verifies when the database is back
            await run_in_threadpool(app.state.readiness.verify_ledger)
            await run_in_threadpool(_report_unsealed, app.state.services)
        with app.state.audit_recorder.run_in_background():
            yield
    app.state.services.close()


def _report_unsealed(services: Services) -> None:
    with suppress(SQLAlchemyError), services.database.read() as session:
        if unsealed := Keys(services.identity_key).list_unsealed(session):
            structlog.get_logger().warning("API keys without a valid seal are not accepted", keys=unsealed)


def build_services(settings: Settings) -> Services:
    """Build the API's collaborators from the settings.

    Raises:
        VaultError: a key file is missing or damaged, or a storage URL is not supported.
    """
    keys = load_api_keys(settings.keys_dir)
    signer = Signer(keys.ledger_seed, keys.ledger_retired, keys.ledger_until)
    mark = HighWaterMark(open_marks(settings.mark_url), signer)
    ledger, queue = Ledger(signer, settings.max_epsilon, mark), CeleryQueue(settings.broker_url, settings.data_dir)
    database = Database(make_engine(settings.database_url), mark.confirm)
    tokens, flow = _build_sign_in(settings)
    return Services(
        database=database,
        ledger=ledger,
        areas=Areas.at(settings.incoming_url, settings.released_url, settings.wrapped_keys_url),
        queue=queue,
        signer=signer,
        sealing_key=keys.sealing_key,
        identity_key=keys.identity_key,
        verification_keys=(
            make_verification_key(keys.ledger_public, "ledger"),
            make_verification_key(keys.release_public, "release"),
            *(make_verification_key(retired, "ledger") for retired in keys.ledger_retired),
            *(make_verification_key(retired, "release") for retired in keys.release_retired),
        ),
        limits=Limits(
            upload_bytes=settings.max_upload_bytes,
            slots=settings.max_rows,
            key_backup_days=settings.key_backup_days,
            open_uploads=settings.max_open_uploads,
            datasets=settings.max_datasets,
            active_jobs=settings.max_active_jobs,
            keys=settings.max_keys,
        ),
        on_dataset_deleted=Lifecycle(ledger, queue).dataset_deleted,
        behind_tls=settings.behind_tls,
        tokens=tokens,
        code_flow=flow,
        rates=RateLimits(
            open_windows(settings.broker_url),
            requests=Rate(settings.requests_per_window, settings.request_window_seconds),
            failed_sign_ins=Rate(settings.failed_sign_ins_per_minute, 60),
            proxies=TrustedProxies.of(settings.trusted_proxies),
        ),
        background=BackgroundWriter(database),
    )


def _build_sign_in(settings: Settings) -> "tuple[TokenVerifier | None, CodeFlow | None]":
    """Build the verifier of bearer tokens, and the flow of the dashboard.

    Raises:
        CorevaultError: the settings of OpenID Connect are not complete, or its libraries are missing.
    """
    if settings.oidc_issuer is None:
        if settings.oidc_client_id is not None:
            raise CorevaultError("COREVAULT_OIDC_CLIENT_ID needs COREVAULT_OIDC_ISSUER, the issuer of this client.")
        return None, None
    if settings.oidc_audience is None:
        raise CorevaultError("COREVAULT_OIDC_ISSUER needs COREVAULT_OIDC_AUDIENCE, the audience of its tokens.")
    try:
        from app.oidc import Client, CodeFlow, Documents, Provider, ProviderKeys, TokenVerifier  # noqa: PLC0415  (an extra)
    except ImportError:
        raise CorevaultError("COREVAULT_OIDC_ISSUER needs an extra: pip install 'corevault-server[oidc]'") from None
    documents, issuer = Documents(settings.oidc_ca_file), settings.oidc_issuer
    keys = ProviderKeys(documents, issuer, settings.oidc_jwks_url)
    roles = dict(pair.rsplit("=", 1) for pair in settings.oidc_roles)
    tokens = TokenVerifier(Provider(issuer, settings.oidc_audience, settings.oidc_role_claim, roles), keys)
    if settings.oidc_client_id is None:
        return tokens, None
    client = Client(settings.oidc_client_id, settings.oidc_client_secret, settings.oidc_scope)
    of_client = TokenVerifier(Provider(issuer, client.client_id, settings.oidc_role_claim, roles), keys)
    return tokens, CodeFlow(documents, issuer, client, of_client)


def make_verification_key(public_key: str, use: str) -> VerificationKey:
    """Make the published form of a public key (base64)."""
    return VerificationKey(compute_key_id(base64.b64decode(public_key)), public_key, use)
