"""Spans for OpenTelemetry, where it is installed and somebody collects them."""

from __future__ import annotations

from contextlib import nullcontext
from functools import cache
from typing import Any


class _NoSpan:
    def set_attribute(self, name: str, value: Any) -> None:
        pass


_NO_SPAN = nullcontext(_NoSpan())


@cache
def _api() -> Any:
    try:
        from opentelemetry import trace
    except ImportError:
        return None
    return trace


def span(name: str) -> Any:
    """Around a piece of work. It never holds content."""
    trace = _api()
    if trace is None or type(trace.get_tracer_provider()) is trace.ProxyTracerProvider:
        return _NO_SPAN
    return trace.get_tracer("recollect").start_as_current_span(name)
