"""Prometheus metrics of the API, in a registry of their own: counts and times by route template, nothing else."""

from collections.abc import Iterable
from typing import Final

from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest
from prometheus_client.metrics_core import Metric
from prometheus_client.multiprocess import MultiProcessCollector
from prometheus_client.registry import Collector

from app.http.middleware.outer_middleware import Exchange

PUBLIC: Final = frozenset({"corevault_database_up", "corevault_sweeper_up"})
"""Families that say no more than whether the service works."""
PUBLIC_ROUTES: Final = frozenset({"/", "/health/live", "/health/ready", "/metrics", "/v1/keys"})
"""Routes that answer everybody alike: how often they are called tells nothing about owners, analysts and their data."""
_BUCKETS: Final = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 60.0)


class Metrics:
    """Label values come from the code (templates, methods, statuses), so that no caller can add a series."""

    def __init__(self, *collectors: Collector, shared: str | None = None) -> None:
        """``collectors`` are asked at every scrape.

        ``shared``: the folder in which the library keeps the counts of several processes, of those that have ended too.
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
        request = exchange.request
        self._requests.labels(request.method, request.route, str(exchange.status)).inc()
        self._seconds.labels(request.route).observe(exchange.seconds)

    def text(self) -> bytes:
        """All series, in the exposition format, version 0.0.4."""
        return generate_latest(self._shown)

    def public_text(self) -> bytes:
        """The series that everybody may see: an upload or a job changes none of them."""
        shown = CollectorRegistry()
        shown.register(_Public(self._shown))
        return generate_latest(shown)


class _Public(Collector):
    def __init__(self, registry: CollectorRegistry) -> None:
        self._registry = registry

    def describe(self) -> Iterable[Metric]:
        """Nothing beforehand: registering reads no metric."""
        return ()

    def collect(self) -> Iterable[Metric]:
        for family in self._registry.collect():
            shown = Metric(family.name, family.documentation, family.type)  # others are shown the whole family
            shown.samples = [
                each for each in family.samples if family.name in PUBLIC or each.labels.get("route") in PUBLIC_ROUTES
            ]
            if shown.samples:
                yield shown
