"""OpenTelemetry traces, where the extra ``tracing`` is installed and an endpoint is set; otherwise nothing.

Spans hold ids, templates and codes. Exceptions are never recorded: their messages may quote what they worked on. The
context of a request reaches the worker in the job's row, never in a message, and none is taken from callers.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from app.errors import CorevaultError

if TYPE_CHECKING:
    from opentelemetry.context import Context
    from opentelemetry.sdk.trace import SpanProcessor
    from opentelemetry.trace import Tracer

Attribute = str | int
_NAME: Final = "corevault"
_state: dict[str, "Tracer"] = {}


class NotInstalled(CorevaultError):
    """An endpoint is set, and the extra is missing."""

    default = "COREVAULT_OTLP_ENDPOINT needs the extra: pip install 'corevault-server[tracing]'."


class Open:
    """A span that is under way."""

    def __init__(self) -> None:
        self.name: str | None = None
        self.attributes: dict[str, Attribute] = {}

    def tell(self, **attributes: Attribute | None) -> None:
        """Attributes to set at its end; those that are None are left out."""
        self.attributes |= {name: value for name, value in attributes.items() if value is not None}


def configure(endpoint: str | None, service: str) -> None:
    """Send the spans of this process to an OTLP collector (``http://host:4318``); None sends nothing.

    Raises:
        NotInstalled: where ``corevault-server[tracing]`` is not.
    """
    if endpoint is None:
        return
    try:
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter  # noqa: PLC0415
        from opentelemetry.sdk.trace.export import BatchSpanProcessor  # noqa: PLC0415
    except ImportError:
        raise NotInstalled from None
    start(BatchSpanProcessor(OTLPSpanExporter(f"{endpoint.rstrip('/')}/v1/traces")), service)


def start(processor: "SpanProcessor", service: str) -> None:
    """Hand every span of this process to ``processor``."""
    from opentelemetry.sdk.resources import Resource  # noqa: PLC0415  (the extra may be missing)
    from opentelemetry.sdk.trace import TracerProvider  # noqa: PLC0415

    provider = TracerProvider(resource=Resource({"service.name": service}), shutdown_on_exit=True)
    provider.add_span_processor(processor)
    _state["tracer"] = provider.get_tracer(_NAME)


def stop() -> None:
    """Trace no more."""
    _state.clear()


@contextmanager
def span(name: str, parent: str | None = None, **attributes: Attribute | None) -> Iterator[Open]:
    """A span around the block; below ``parent`` (a trace context from :func:`context`) or the one that is open here."""
    opened, tracer = Open(), _state.get("tracer")
    opened.tell(**attributes)
    if tracer is None:
        yield opened
        return
    above = None if parent is None else _extract(parent)
    with tracer.start_as_current_span(name, above, record_exception=False, set_status_on_exception=False) as current:
        try:
            yield opened
        finally:
            current.update_name(opened.name or name)
            current.set_attributes(opened.attributes)


def context() -> str | None:
    """The W3C trace context (``traceparent``) of the span that is open here, if any."""
    if "tracer" not in _state:
        return None
    from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator  # noqa: PLC0415

    carrier: dict[str, str] = {}
    TraceContextTextMapPropagator().inject(carrier)
    return carrier.get("traceparent")


def _extract(parent: str) -> "Context":
    from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator  # noqa: PLC0415

    return TraceContextTextMapPropagator().extract({"traceparent": parent})
