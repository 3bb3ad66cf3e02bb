"""Prometheus metrics of the API: number and duration of requests by route template."""

from collections.abc import Iterable
from typing import Final

from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest
from prometheus_client.metrics_core import Metric
from prometheus_client.multiprocess import MultiProcessCollector
from prometheus_client.registry import Collector

from app.http.middleware.outer_middleware import Exchange

PUBLIC: Final = frozenset({"corevault_database_up", "corevault_sweeper_up"})
"""Metrics that every caller may see, because they show only whether the service works."""
PUBLIC_ROUTES: Final = frozenset({"/", "/health/live", "/health/ready", "/metrics", "/v1/keys"})
"""Routes that give all callers the same answer. The number of requests to them reveals nothing about owners or data."""
_BUCKETS: Final = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 60.0)


class Metrics:
    """Metrics of the API. A caller cannot add a time series.

    The values of all labels come from the code: route templates, methods and status codes.
    """

    def __init__(self, *collectors: Collector, shared: str | None = None) -> None:
        """Register the metrics.

        Args:
            collectors: sources of further metrics, which are read at every scrape.
            shared: the folder in which prometheus_client keeps the counts of all processes, even after they end.
                None if there is only one process.
        """
        self._registry = CollectorRegistry()
        self._shown = CollectorRegistry() if shared else self._registry
        if shared:
            MultiProcessCollector(self._shown, shared)  # type: ignore[no-untyped-call]
        for collector in collectors:
            self._shown.register(collector)
        self._requests = Counter(
            "corevault_http_requests",
            "Requests that were answered.",
            ("method", "route", "status"),
            registry=self._registry,
        )
        self._seconds = Histogram(
            "corevault_http_request_seconds",
            "Time to the end of the answer.",
            ("route",),
            buckets=_BUCKETS,
            registry=self._registry,
        )

    def observe(self, exchange: Exchange) -> None:
        """Count a request, and record its duration."""
        request = exchange.request
        self._requests.labels(request.method, request.route, str(exchange.status)).inc()
        self._seconds.labels(request.route).observe(exchange.seconds)

    def text(self) -> bytes:
        """Return all time series in the text format of Prometheus, version 0.0.4."""
        return generate_latest(self._shown)

    def public_text(self) -> bytes:
        """Return the time series that every caller may see. Uploads and jobs do not change them."""
        shown = CollectorRegistry()
        shown.register(_Public(self._shown))
        return generate_latest(shown)


class _Public(Collector):
    def __init__(self, registry: CollectorRegistry) -> None:
        self._registry = registry

    def describe(self) -> Iterable[Metric]:
        """Describe nothing, so that registration reads no metric."""
        return ()

    def collect(self) -> Iterable[Metric]:
        for family in self._registry.collect():
            # a copy with fewer samples, because the registry also serves the whole family
            shown = Metric(family.name, family.documentation, family.type)
            shown.samples = [
                each for each in family.samples if family.name in PUBLIC or each.labels.get("route") in PUBLIC_ROUTES
            ]
            if shown.samples:
                yield shown
