"""What Prometheus is told: requests and latency, tokens, batches, queue, models."""

from __future__ import annotations

from prometheus_client import (
    CONTENT_TYPE_LATEST,
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    generate_latest,
)

from transduce.serving.batching import Batch

CONTENT_TYPE = CONTENT_TYPE_LATEST
_SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60)
_COUNTS = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512)


class Metrics:
    """Counters of one server; nothing in them tells texts, keys or addresses."""

    def __init__(self) -> None:
        registry = self.registry = CollectorRegistry()
        self.requests = Counter(
            "transduce_requests", "Requests answered.", ["method", "path", "status"], registry=registry
        )
        self.latency = Histogram(
            "transduce_request_seconds",
            "From the first byte of a request to the end of its answer.",
            ["path"],
            buckets=_SECONDS,
            registry=registry,
        )
        self.in_flight = Gauge(
            "transduce_requests_in_flight", "Requests that are being answered.", registry=registry
        )
        self.queue = Gauge(
            "transduce_queue_requests", "Requests that wait for the worker.", registry=registry
        )
        self.queue_time = Histogram(
            "transduce_queue_seconds",
            "From asking the worker to its beginning.",
            buckets=_SECONDS,
            registry=registry,
        )
        self.batch_lines = Histogram(
            "transduce_batch_lines", "Lines translated together.", buckets=_COUNTS, registry=registry
        )
        self.batch_requests = Histogram(
            "transduce_batch_requests",
            "Requests whose lines are translated together.",
            buckets=_COUNTS,
            registry=registry,
        )
        self.batch_time = Histogram(
            "transduce_batch_seconds", "Translating a batch.", buckets=_SECONDS, registry=registry
        )
        self.source_tokens = Counter(
            "transduce_source_tokens", "Tokens translated, ends counted.", registry=registry
        )
        self.characters = Counter(
            "transduce_characters", "Characters that were asked for.", registry=registry
        )
        self.reloads = Counter(
            "transduce_model_reloads",
            "Model folders that changed.",
            ["model", "result"],
            registry=registry,
        )
        self.worker_deaths = Counter(
            "transduce_worker_deaths", "Times the worker ended by itself.", registry=registry
        )
        self.ready = Gauge("transduce_ready", "Whether requests are taken: 1 or 0.", registry=registry)

    def batch(self, batch: Batch, seconds: float) -> None:
        """Nothing; a batch was translated in so many seconds."""
        self.batch_lines.observe(batch.lines)
        self.batch_requests.observe(len(batch.shares))
        self.batch_time.observe(seconds)
        self.source_tokens.inc(batch.tokens)

    def waited(self, seconds: float) -> None:
        """Nothing; a request waited so long before it was begun."""
        self.queue_time.observe(seconds)

    def text(self) -> bytes:
        """All of it in Prometheus' format."""
        return generate_latest(self.registry)
