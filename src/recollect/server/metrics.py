"""Counts and timings of a server, as Prometheus reads them."""

from __future__ import annotations

import threading
import time
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from itertools import groupby
from typing import Any

from recollect.models.embedders.base import Embedder
from recollect.stores.metrics import BOUNDS, Durations, Histogram, Labels, Metric


class Metrics:
    """Never by content, nor by anybody's name: routes, methods and statuses are few."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._counts: dict[tuple[str, Labels], float] = defaultdict(float)
        self._times: dict[tuple[str, Labels], Durations] = {}
        self._help: dict[str, str] = {}

    def count(self, name: str, help: str, labels: Mapping[str, str], by: float = 1.0) -> None:
        with self._lock:
            self._help.setdefault(name, help)
            self._counts[name, tuple(sorted(labels.items()))] += by

    def took(self, name: str, help: str, seconds: float, labels: Mapping[str, str]) -> None:
        """Into a histogram."""
        with self._lock:
            self._help.setdefault(name, help)
            durations = self._times.setdefault((name, tuple(sorted(labels.items()))), Durations())
        durations.add(seconds)

    def counters(self) -> list[Metric]:
        with self._lock:
            counted = [Metric(name, self._help[name], n, labels) for (name, labels), n in self._counts.items()]
            timed = list(self._times.items())
        return counted + [
            Metric(name, self._help[name], durations.histogram(), labels) for (name, labels), durations in timed
        ]


def exposition(counters: Sequence[Metric], gauges: Sequence[Metric]) -> str:
    """The text that Prometheus reads: counters and histograms first, then gauges, each by name."""
    lines: list[str] = []
    for metrics, kind in ((counters, "counter"), (gauges, "gauge")):
        ordered = sorted(metrics, key=lambda metric: (metric.name, metric.labels))
        for name, samples in groupby(ordered, key=lambda metric: metric.name):
            group = list(samples)
            histogram = isinstance(group[0].value, Histogram)
            lines += [f"# HELP {name} {group[0].help}", f"# TYPE {name} {'histogram' if histogram else kind}"]
            for metric in group:
                lines += _sample_lines(metric)
    return "\n".join(lines) + "\n"


class Timed:
    """A model whose answers are timed."""

    def __init__(self, embedder: Embedder, metrics: Metrics) -> None:
        self._embedder, self._metrics = embedder, metrics

    def __getattr__(self, name: str) -> Any:
        return getattr(self._embedder, name)

    @property
    def model(self) -> str:
        return self._embedder.model

    @property
    def dimensions(self) -> int:
        return self._embedder.dimensions

    def embed_query(self, text: str) -> Any:
        return self._timed("query", lambda: self._embedder.embed_query(text))

    def embed_documents(self, texts: Sequence[str]) -> Any:
        return self._timed("documents", lambda: self._embedder.embed_documents(texts))

    def close(self) -> None:
        self._embedder.close()

    def _timed(self, what: str, work: Callable[[], Any]) -> Any:
        start = time.perf_counter()
        try:
            return work()
        finally:
            took = time.perf_counter() - start
            self._metrics.took("recollect_model_seconds", "Time of the model.", took, {"what": what})


def _sample_lines(metric: Metric) -> list[str]:
    name, labels = metric.name, metric.labels
    if not isinstance(metric.value, Histogram):
        return [f"{name}{_shown(labels)} {metric.value:g}"]
    lines: list[str] = []
    total = 0.0
    for bound, number in zip((*map(str, BOUNDS), "+Inf"), metric.value.counts, strict=True):
        total += number
        lines.append(f"{name}_bucket{_shown((*labels, ('le', bound)))} {total:g}")
    return [*lines, f"{name}_sum{_shown(labels)} {metric.value.sum:g}", f"{name}_count{_shown(labels)} {total:g}"]


def _shown(labels: Labels) -> str:
    if not labels:
        return ""
    quoted = (
        f'{name}="{value.replace(chr(92), chr(92) * 2).replace(chr(34), chr(92) + chr(34))}"' for name, value in labels
    )
    return "{" + ",".join(quoted) + "}"
