"""Counts and timings of a server, as Prometheus reads them."""

from __future__ import annotations

import threading
import time
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from recollect.models.embedders.base import Embedder

_BOUNDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
_Labels = tuple[tuple[str, str], ...]


class Metrics:
    """Never by content, nor by anybody's name: routes, methods and statuses are few."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._counts: dict[tuple[str, _Labels], float] = defaultdict(float)
        self._times: dict[tuple[str, _Labels], list[float]] = {}
        self._help: dict[str, tuple[str, str]] = {}

    def count(self, name: str, help: str, labels: Mapping[str, str], by: float = 1.0) -> None:
        with self._lock:
            self._help.setdefault(name, ("counter", help))
            self._counts[name, tuple(sorted(labels.items()))] += by

    def took(self, name: str, help: str, seconds: float, labels: Mapping[str, str]) -> None:
        """Into a histogram."""
        with self._lock:
            self._help.setdefault(name, ("histogram", help))
            row = self._times.setdefault((name, tuple(sorted(labels.items()))), [0.0] * (len(_BOUNDS) + 2))
            row[bisect_left(_BOUNDS, seconds)] += 1
            row[-1] += seconds

    def text(self, gauges: Mapping[str, tuple[str, float]]) -> str:
        """`gauges` are what is read when it is asked for: by name, what it is and how much."""
        lines: list[str] = []
        with self._lock:
            for name, (kind, help) in sorted(self._help.items()):
                lines += [f"# HELP {name} {help}", f"# TYPE {name} {kind}"]
                if kind == "counter":
                    lines += [
                        f"{name}{_shown(of)} {n:g}"
                        for (metric, of), n in sorted(self._counts.items())
                        if metric == name
                    ]
                else:
                    for (metric, of), row in sorted(self._times.items()):
                        if metric == name:
                            lines += _histogram(name, of, row)
        for name, (help, value) in sorted(gauges.items()):
            lines += [f"# HELP {name} {help}", f"# TYPE {name} gauge", f"{name} {value:g}"]
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


def _histogram(name: str, labels: _Labels, row: list[float]) -> list[str]:
    lines: list[str] = []
    total = 0.0
    for bound, number in zip((*map(str, _BOUNDS), "+Inf"), row[:-1], strict=True):
        total += number
        lines.append(f"{name}_bucket{_shown((*labels, ('le', bound)))} {total:g}")
    return [*lines, f"{name}_sum{_shown(labels)} {row[-1]:g}", f"{name}_count{_shown(labels)} {total:g}"]


def _shown(labels: _Labels) -> str:
    if not labels:
        return ""
    quoted = (
        f'{name}="{value.replace(chr(92), chr(92) * 2).replace(chr(34), chr(92) + chr(34))}"' for name, value in labels
    )
    return "{" + ",".join(quoted) + "}"
