"""Retention over time as a picture: SVG, and one line of blocks for a terminal."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from recollect.maintenance.simulation import Simulation

_WIDTH, _HEIGHT, _LEFT, _TOP, _BOTTOM, _LEGEND = 860, 420, 56, 44, 48, 210
_COLOURS = "#1b6ca8 #d1495b #2e933c #8e5ea2 #e09f3e #3a7d7c #6b705c #b5179e #5f0f40 #577590".split()
_BLOCKS = "▁▂▃▄▅▆▇█"
_FONT = 'font-family="system-ui, sans-serif" font-size="12" fill="#333"'


def sparkline(values: Sequence[int], width: int = 30) -> str:
    """Heights relative to the highest; where there are more values than fit, evenly chosen ones, ends included."""
    if len(values) > width:
        values = [values[round(at * (len(values) - 1) / (width - 1))] for at in range(width)]
    most = max(values, default=0) or 1
    return "".join(_BLOCKS[round(value / most * (len(_BLOCKS) - 1))] for value in values)


def svg(simulation: Simulation) -> str:
    """The share of today's memories that is live on each day, a line for each kind and tier, and one for all."""
    lines = [("all", simulation.live, "#111")]
    for at, line in enumerate(simulation.retained):
        lines.append((f"{line.kind} · {line.tier}", line.live, _COLOURS[at % len(_COLOURS)]))
    title = f"Live memories from {simulation.start:%Y-%m-%d}, {simulation.days} days ahead"
    height = max(_HEIGHT, _TOP + 20 * len(lines) + 20)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height}" role="img">',
        f"<title>{title}</title>",
        f'<rect width="{_WIDTH}" height="{height}" fill="#fff"/>',
        f'<text x="{_LEFT}" y="24" font-weight="600" {_FONT}>{title}</text>',
        *_axes(simulation.days),
    ]
    for at, (name, live, colour) in enumerate(lines):
        shown = max(1, live[0])
        points = " ".join(f"{_x(day, simulation.days):.1f},{_y(number / shown):.1f}" for day, number in enumerate(live))
        wide, y = 3 if not at else 2, _TOP + 20 * at + 6
        parts.append(f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="{wide}"/>')
        x = _WIDTH - _LEGEND + 14
        parts.append(f'<line x1="{x}" x2="{x + 18}" y1="{y}" y2="{y}" stroke="{colour}" stroke-width="{wide}"/>')
        label = escape(f"{name}: {live[0]:,} → {live[-1]:,}")
        parts.append(f'<text x="{x + 24}" y="{y + 4}" {_FONT}>{label}</text>')
    return "\n".join([*parts, "</svg>"]) + "\n"


def _axes(days: int) -> list[str]:
    parts: list[str] = []
    for share in (0.0, 0.25, 0.5, 0.75, 1.0):
        y = _y(share)
        parts.append(f'<line x1="{_LEFT}" x2="{_x(1, 1):.1f}" y1="{y:.1f}" y2="{y:.1f}" stroke="#ddd"/>')
        parts.append(f'<text x="{_LEFT - 8}" y="{y + 4:.1f}" text-anchor="end" {_FONT}>{share:.0%}</text>')
    for at in range(6):
        day = round(days * at / 5)
        label = "today" if not day else f"day {day}"
        x, y = _x(day, days), _HEIGHT - _BOTTOM + 20
        parts.append(f'<text x="{x:.1f}" y="{y}" text-anchor="middle" {_FONT}>{label}</text>')
    return parts


def _x(day: int, days: int) -> float:
    return _LEFT + (_WIDTH - _LEGEND - _LEFT) * day / days


def _y(share: float) -> float:
    return _HEIGHT - _BOTTOM - (_HEIGHT - _BOTTOM - _TOP) * share
