"""Counts and timings of a server, as Prometheus reads them."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from itertools import groupby
from typing import Any

from prometheus_client import CollectorRegistry, Counter, Histogram, disable_created_metrics, generate_latest
from prometheus_client import Metric as Family
from prometheus_client.registry import Collector

from recollect.models.embedders.base import Embedder
from recollect.stores import metrics as stored
from recollect.stores.metrics import BOUNDS, Metric

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
_METHODS = frozenset(("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"))
disable_created_metrics()  # a second series for each counter, which nobody asked for


class Metrics:
    """The numbers of one server, in a registry of their own. No label holds content or anybody's name."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self._children: dict[tuple[Any, tuple[str, ...]], Any] = {}
        labels = ("surface", "route", "method")
        self._requests = Counter(
            "recollect_http_requests_total", "Requests.", (*labels, "status"), registry=self.registry
        )
        self._request_seconds = self._histogram("recollect_http_request_seconds", "Time to answer.", labels)
        self._verb_seconds = self._histogram("recollect_verb_seconds", "Time of the verb itself.", ("verb",))
        self._model_seconds = self._histogram("recollect_model_seconds", "Time of the model.", ("what",))

    def _histogram(self, name: str, help: str, labels: Sequence[str]) -> Histogram:
        return Histogram(name, help, labels, registry=self.registry, buckets=BOUNDS)

    def count_request(self, surface: str, route: str, method: str, status: int, seconds: float) -> None:
        method = method if method in _METHODS else "other"  # a client must not be able to make up labels
        self._child(self._requests, surface, route, method, str(status)).inc()
        self._child(self._request_seconds, surface, route, method).observe(seconds)

    def time_verb(self, verb: str, seconds: float) -> None:
        self._child(self._verb_seconds, verb).observe(seconds)

    def _child(self, metric: Any, *labels: str) -> Any:
        """`metric.labels(*labels)`, which takes longer than to count."""
        key = metric, labels
        if (child := self._children.get(key)) is None:
            child = self._children[key] = metric.labels(*labels)
        return child

    def time_model(self, what: str, seconds: float) -> None:
        self._model_seconds.labels(what).observe(seconds)

    def add(self, collect: Callable[[], Iterable[Family]]) -> None:
        """Numbers that are asked for each time, such as those of the store."""
        self.registry.register(_Collected(collect))

    def text(self) -> bytes:
        return generate_latest(self.registry)


class _Collected(Collector):
    def __init__(self, collect: Callable[[], Iterable[Family]]) -> None:
        self._collect = collect

    def collect(self) -> Iterable[Family]:
        return self._collect()


def exposition(gauges: Sequence[Metric]) -> str:
    """Gauges alone, as the text that Prometheus reads."""
    registry = CollectorRegistry()
    registry.register(_Collected(lambda: families(gauges, "gauge")))
    return generate_latest(registry).decode()


def families(metrics: Sequence[Metric], kind: str) -> list[Family]:
    """The numbers of a store, by name. `kind` is `counter` or `gauge`; a histogram says itself that it is one."""
    ordered = sorted(metrics, key=lambda metric: (metric.name, metric.labels))
    return [_family(list(group), kind) for _, group in groupby(ordered, key=lambda metric: metric.name)]


def _family(group: Sequence[Metric], kind: str) -> Family:
    name, is_histogram = group[0].name, isinstance(group[0].value, stored.Histogram)
    # The client adds the suffix `_total` to the names of counters.
    family = Family(name.removesuffix("_total"), group[0].help, "histogram" if is_histogram else kind)
    for metric in group:
        labels = dict(metric.labels)
        if not isinstance(metric.value, stored.Histogram):
            family.add_sample(name, labels, float(metric.value))
            continue
        total = 0.0
        for bound, number in zip((*map(str, BOUNDS), "+Inf"), metric.value.counts, strict=True):
            total += number
            family.add_sample(f"{name}_bucket", {**labels, "le": bound}, total)
        family.add_sample(f"{name}_sum", labels, metric.value.sum)
        family.add_sample(f"{name}_count", labels, total)
    return family


class Timed:
    """An Embedder whose answers are timed. Everything else is the embedder's own."""

    def __init__(self, embedder: Embedder, metrics: Metrics) -> None:
        self._embedder, self._metrics = embedder, metrics

    def __getattr__(self, name: str) -> Any:
        return getattr(self._embedder, name)

    def embed_query(self, text: str) -> Any:
        return self._timed("query", lambda: self._embedder.embed_query(text))

    def embed_documents(self, texts: Sequence[str]) -> Any:
        return self._timed("documents", lambda: self._embedder.embed_documents(texts))

    def _timed(self, what: str, work: Callable[[], Any]) -> Any:
        start = time.perf_counter()
        try:
            return work()
        finally:
            self._metrics.time_model(what, time.perf_counter() - start)
