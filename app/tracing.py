"""OpenTelemetry traces, if the extra ``tracing`` is installed and an endpoint is set.

Spans contain ids, templates and codes. Exceptions are not recorded, because their messages may quote data. The trace
context of a request reaches the worker in the job's row, not in a message. A trace context of a caller is ignored.
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
    """An endpoint is set, but the extra is not installed."""

    default = "COREVAULT_OTLP_ENDPOINT needs an extra: pip install 'corevault-server[tracing]'."


class OpenSpan:
    """A span that has not ended."""

    def __init__(self) -> None:
        self.name: str | None = None
        self.attributes: dict[str, Attribute] = {}

    def set_attributes(self, **attributes: Attribute | None) -> None:
        """Set attributes when the span ends; None values are left out."""
        self.attributes |= {name: value for name, value in attributes.items() if value is not None}


def configure(endpoint: str | None, service: str) -> None:
    """Send the spans of this process to an OTLP collector (``http://host:4318``); None sends nothing.

    Raises:
        NotInstalled: the extra ``tracing`` is not installed.
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
    """Stop tracing."""
    _state.clear()


@contextmanager
def open_span(name: str, parent: str | None = None, **attributes: Attribute | None) -> Iterator[OpenSpan]:
    """Open a span around the block.

    Its parent is ``parent``, a trace context from :func:`find_context`, or else the current span.
    """
    opened, tracer = OpenSpan(), _state.get("tracer")
    opened.set_attributes(**attributes)
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


def find_context() -> str | None:
    """Return the W3C trace context (``traceparent``) of the current span, if there is one."""
    if "tracer" not in _state:
        return None
    from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator  # noqa: PLC0415

    carrier: dict[str, str] = {}
    TraceContextTextMapPropagator().inject(carrier)
    return carrier.get("traceparent")


def _extract(parent: str) -> "Context":
    from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator  # noqa: PLC0415

    return TraceContextTextMapPropagator().extract({"traceparent": parent})
