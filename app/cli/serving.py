"""The API server in this process."""

import os
import signal
import socket
import sys
from types import FrameType

import uvicorn

from app import tracing
from app.cli.connections import make_protocol
from app.cli.memory import keep_what_is_freed
from app.cli.several import METRICS_DIR
from app.collector import ignore_present_objects
from app.config import Settings
from app.http.middleware.addresses import AllowedHosts
from app.http.middleware.logs import configure_logs
from app.http.middleware.slow_body_guard import LeastRate
from app.main import build_services, create_app

_GRACE_SECONDS = 5


def serve(settings: Settings, listener: socket.socket) -> None:
    """Serve the API on ``listener`` until SIGTERM or SIGINT; open streams then get a few seconds."""
    keep_what_is_freed()
    configure_logs(settings.log_level)
    tracing.configure(settings.otlp_endpoint, "corevault-api")
    services = build_services(settings)
    config = uvicorn.Config(
        create_app(
            services,
            metrics=settings.metrics,
            metrics_dir=os.environ.get(METRICS_DIR),
            hosts=AllowedHosts.of(settings.allowed_hosts),
            least_rate=_least_rate(settings),
            guide=settings.guide_dir,
            detection_seconds=settings.audit_detection_seconds,
        ),
        http=make_protocol(settings.header_seconds, settings.unread_seconds),
        ws="none",
        lifespan="on",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        timeout_graceful_shutdown=_GRACE_SECONDS,
        ssl_certfile=settings.tls_cert,
        ssl_keyfile=settings.tls_key,
    )
    ignore_present_objects()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, _leave)  # the server raises the signal again after it has closed everything
    uvicorn.Server(config).run(sockets=[listener])


def _least_rate(settings: Settings) -> LeastRate | None:
    rate = settings.least_body_bytes_per_second
    return LeastRate(rate, settings.least_body_rate_seconds) if rate else None


def _leave(_: int, __: FrameType | None) -> None:
    sys.exit(0)
