"""What can be watched, in the format of Prometheus."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator

from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest
from prometheus_client.core import GaugeMetricFamily, Metric

from aircl.serve.service import Service

SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
METHODS = ("GET", "HEAD", "POST")

# Predictions over which quantiles of their latency are told.
LATENCY_REQUESTS = 500

# Names of figures of `Drift`, and what they are called here.
DRIFT = {
    "progressive": (
        "aircl_progressive_accuracy", "Share of the last 1000 learned rows that had been predicted rightly just before."
    ),
    "expected": ("aircl_expected_accuracy", "Accuracy to expect of new rows that are like those learned."),
    "shortfall": ("aircl_accuracy_shortfall", "Expected minus progressive accuracy."),
    "novel": (
        "aircl_novel_share", "Share of novel rows among the last 1000 that were looked at; usual is aircl_novel_usual."
    ),
    "novel_usual": ("aircl_novel_usual", "Share of novel rows if all were like those learned."),
}  # fmt: skip


class Metrics:
    """Counts of requests, and a view of a service. Every service has its own.

    Parameters
    ----------
    service : Service

    Attributes
    ----------
    predict_seconds : deque of float
        What the last predictions took.
    """

    def __init__(self, service: Service) -> None:
        self.predict_seconds: deque[float] = deque(maxlen=LATENCY_REQUESTS)
        self._registry = CollectorRegistry()
        self._requests = Counter(
            "aircl_requests", "Requests answered.", ("route", "method", "status"), registry=self._registry
        )
        self._seconds = Histogram(
            "aircl_request_seconds", "Time to answer.", ("route",), buckets=SECONDS, registry=self._registry
        )
        self._registry.register(_View(service))

    def count(self, route: str, method: str, status: int, seconds: float) -> None:
        """Count one request."""
        self._requests.labels(route, method if method in METHODS else "other", str(status)).inc()
        if route == "/predict" and status == 200:
            self.predict_seconds.append(seconds)
        if route != "/events":  # which lasts as long as somebody listens
            self._seconds.labels(route).observe(seconds)

    def text(self) -> bytes:
        """Return everything as Prometheus reads it."""
        return generate_latest(self._registry)


class _View:
    """What a service is like when it is looked at: nothing has to be kept up to date."""

    def __init__(self, service: Service) -> None:
        self._service = service

    def collect(self) -> Iterator[Metric]:
        service, moment = self._service, self._service.moment()
        rows = GaugeMetricFamily("aircl_class_rows", "Rows learned per class.", labels=["label"])
        for label, count in service.class_rows():
            rows.add_metric([str(label)], count)
        yield rows
        yield GaugeMetricFamily("aircl_version", "The last change that was made.", value=moment.version)
        yield GaugeMetricFamily("aircl_rows_behind", "Rows predictions do not know yet.", value=service.rows_behind)
        writer = service.writer
        is_storing = writer is None or writer.durable.problem is None
        yield GaugeMetricFamily("aircl_storing", "1 if changes can be made durable.", value=is_storing)
        yield GaugeMetricFamily("aircl_healthy", "1 if GET /healthz says that it is ok.", value=service.problem is None)
        figures = service.drift.figures()
        for figure, (name, what) in DRIFT.items():
            if figures[figure] is not None:
                yield GaugeMetricFamily(name, what, value=figures[figure])
