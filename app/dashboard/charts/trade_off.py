"""Trade-off curves: true positives of the best test for one unit, over its false positives."""

from collections.abc import Sequence
from typing import Final

from markupsafe import Markup

WIDTH, HEIGHT = 360, 300
LEFT: Final = 48
RIGHT: Final = 12
TOP: Final = 12
BOTTOM: Final = 48
RATES: Final = (1e-4, 1e-3, 3e-3, *(step / 100 for step in range(1, 100)), 0.997, 0.999, 0.9999)
"""Rates of false positives at which curves are drawn."""


def draw_trade_off(limit: Sequence[float], spent: Sequence[float] | None) -> Markup:
    """Draw true positives at :data:`RATES`, for the limit and the spent part."""
    parts = [
        *(_draw_tick(share) for share in (0, 25, 50, 75, 100)),
        _draw_curve("chart-zero", RATES),
        _draw_curve("chart-limit", limit),
    ]
    if spent is not None:
        parts.append(_draw_curve("chart-line", spent))
    parts.append(
        Markup(
            '<text x="{}" y="{}" text-anchor="end">false positives</text><text x="{}" y="{}">true positives</text>'
        ).format(WIDTH - RIGHT, HEIGHT - 8, LEFT + 6, TOP + 10)
    )
    label = Markup(
        '<svg class="chart small-chart" viewBox="0 0 {} {}" role="img" aria-label="Trade-off curves of the best test. '
        'The texts above have the figures at 1 % false positives.">'
    ).format(WIDTH, HEIGHT)
    return label + Markup("").join(parts) + Markup("</svg>")


def _x(rate: float) -> float:
    return LEFT + rate * (WIDTH - LEFT - RIGHT)


def _y(rate: float) -> float:
    return HEIGHT - BOTTOM - rate * (HEIGHT - TOP - BOTTOM)


def _draw_curve(name: str, heights: Sequence[float]) -> Markup:
    points = " ".join(f"{_x(rate):.1f},{_y(height):.1f}" for rate, height in zip(RATES, heights, strict=True))
    return Markup('<polyline class="{}" fill="none" points="{}"/>').format(name, points)


def _draw_tick(percent: int) -> Markup:
    x, y = _x(percent / 100), _y(percent / 100)
    return Markup(
        '<line class="chart-grid" x1="{}" x2="{}" y1="{:.1f}" y2="{:.1f}"/>'
        '<text x="{}" y="{:.1f}" text-anchor="end">{} %</text><text x="{:.1f}" y="{}" text-anchor="middle">{}</text>'
    ).format(LEFT, WIDTH - RIGHT, y, y, LEFT - 6, y + 4, percent, x, HEIGHT - BOTTOM + 16, percent)
