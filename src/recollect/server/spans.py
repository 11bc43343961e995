"""Spans for OpenTelemetry, where it is installed."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from functools import cache
from typing import Any


class _Nothing:
    def set_attribute(self, name: str, value: Any) -> None:
        pass


@cache
def _tracer() -> Any:
    try:
        from opentelemetry import trace
    except ImportError:
        return None
    return trace.get_tracer("recollect")


@contextmanager
def span(name: str) -> Generator[Any]:
    """Around a piece of work. It never holds content."""
    tracer = _tracer()
    if tracer is None:
        yield _Nothing()
        return
    with tracer.start_as_current_span(name) as made:
        yield made
