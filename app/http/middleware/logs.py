"""JSON logs on stderr.

A log line contains ids, path templates and codes. It never contains a body, a header or a query string.
"""

import logging
import sys
from typing import TYPE_CHECKING, Any

import structlog
from structlog.typing import EventDict

from app.context import get_current

if TYPE_CHECKING:  # workers use this module too, and need no framework
    from app.http.middleware.outer_middleware import Exchange


class _LevelAndKindOnly(logging.Formatter):
    """Formats log records of libraries without their messages, which may quote data."""

    def format(self, record: logging.LogRecord) -> str:
        kind = record.exc_info[0].__name__ if record.exc_info and record.exc_info[0] else None
        renderer = structlog.processors.JSONRenderer()
        event = {"event": "library", "level": record.levelname.lower(), "logger": record.name, "kind": kind}
        stamped = structlog.processors.TimeStamper(fmt="iso", utc=True)(None, "", event)
        return str(renderer(None, "", stamped))


def _add_request_id(_: Any, __: str, event: EventDict) -> EventDict:
    """Add the id of the current request to a log line."""
    request = get_current()
    return event if request is None else {"request_id": request.request_id, **event}


def configure_logs(level: str) -> None:
    """Make structlog write one JSON object a line to stderr.

    Of log records of libraries, only the logger and the class of the exception are kept.
    """
    number = logging.getLevelNamesMapping()[level.upper()]
    structlog.configure(
        processors=[
            _add_request_id,
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            structlog.processors.JSONRenderer(),
        ],
        wrapper_class=structlog.make_filtering_bound_logger(number),
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
        cache_logger_on_first_use=False,
    )
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_LevelAndKindOnly())
    logging.basicConfig(level=logging.WARNING, handlers=[handler], force=True)


def log_exchange(exchange: "Exchange") -> None:
    """Log one line for a request."""
    request = exchange.request
    structlog.get_logger().info(
        "request",
        method=request.method,
        route=request.route,
        status=exchange.status,
        seconds=round(exchange.seconds, 6),
        request_id=request.request_id,
    )
