"""Charts as SVG: shapes only, stretched to the room they have. Words and numbers stand beside them as text.

What is made here is safe to be put into a page: it consists of our own elements, numbers, and labels that are escaped.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from markupsafe import Markup, escape

COLOURS = 6
"""Classes c1 to c6, which the style sheet has in light and dark."""
_GAP = 0.16


def colour(at: int) -> str:
    return f"c{at % COLOURS + 1}"


def bars(rows: Sequence[Mapping[str, Any]], names: Sequence[str], label: str) -> Markup:
    """A column for each row, made of the numbers under these names. A row has a `label`."""
    most = max((sum(row.get(name, 0) for name in names) for row in rows), default=0) or 1
    parts: list[str] = []
    for at, row in enumerate(rows):
        top = 100.0
        for which, name in enumerate(names):
            if number := row.get(name, 0):
                height = max(100 * number / most, 1.5)
                top -= height
                place = f'x="{at + _GAP / 2:.2f}" y="{top:.2f}" width="{1 - _GAP:.2f}" height="{height:.2f}"'
                parts.append(f'<rect class="{colour(which)}" {place}/>')
        counts = ", ".join(f"{row[name]:,} {name}" for name in names if row.get(name)) or "none"
        # The whole column answers to the mouse, also where there is little to see.
        title = f"<title>{escape(row['label'])}: {escape(counts)}</title>"
        parts.append(f'<rect class="clear" x="{at}" y="0" width="1" height="100">{title}</rect>')
    return _svg(parts, f"0 0 {max(len(rows), 1)} 100", label, "columns")


def line(values: Sequence[float], label: str) -> Markup:
    """One value after another, from nothing upward, with the room below filled."""
    most = max(values, default=0) or 1
    last = max(len(values) - 1, 1)
    points = [f"{at:.2f},{100 - 96 * value / most:.2f}" for at, value in enumerate(values)]
    if len(points) == 1:
        points.append(f"1,{points[0].partition(',')[2]}")
    path = " ".join(points)
    parts = [
        f'<polygon class="under" points="0,100 {path} {last},100"/>',
        f'<polyline class="line" vector-effect="non-scaling-stroke" points="{path}"/>',
    ]
    return _svg(parts, f"0 0 {last} 100", label, "columns")


def span(start: float, end: float, low: float, high: float, kind: str) -> Markup:
    """From one value to another, on a scale that several of these share; a mark where nothing is."""
    wide = (high - low) or 1.0
    left, right = sorted((start, end))
    x, width = 100 * (left - low) / wide, max(100 * (right - left) / wide, 0.4)
    zero = 100 * (0.0 - low) / wide
    mark = f'<rect class="zero" x="{min(zero, 99.7):.2f}" y="0" width="0.3" height="10"/>' if low <= 0 <= high else ""
    rect = f'<rect class="{escape(kind)}" x="{min(x, 99.6):.2f}" y="1" width="{width:.2f}" height="8"/>'
    return _svg([mark, rect], "0 0 100 10", "", "bar")


def stack(shares: Sequence[float], whole: float, label: str) -> Markup:
    """One bar of several parts; what is missing to the whole stays empty."""
    whole = max(whole, sum(shares)) or 1.0
    x = 0.0
    parts = ['<rect class="rest" x="0" y="0" width="100" height="10"/>']
    for at, share in enumerate(shares):
        width = 100 * share / whole
        parts.append(f'<rect class="{colour(at)}" x="{x:.3f}" y="0" width="{width:.3f}" height="10"/>')
        x += width
    return _svg(parts, "0 0 100 10", label, "bar thick")


def _svg(parts: Sequence[str], box: str, label: str, kind: str) -> Markup:
    """Without a label it is of no use to whoever cannot see it: the same is said in words beside it."""
    attributes = f'role="img" aria-label="{escape(label)}"' if label else 'aria-hidden="true"'
    body = "".join(parts)
    return Markup(f'<svg class="chart {kind}" viewBox="{box}" preserveAspectRatio="none" {attributes}>{body}</svg>')
