"""The weights of a release's points, from the largest to the smallest."""

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median
from typing import Final

from markupsafe import Markup

from app.dashboard.wording import count_noun, format_number

WIDTH: Final = 360
HEIGHT: Final = 190
LEFT: Final = 56
RIGHT: Final = 12
TOP: Final = 12
BOTTOM: Final = 34


@dataclass(frozen=True, slots=True)
class Profile:
    """Figures of the weights. ``effective`` is ``(Σw)² / Σw²``: for equal weights the number of points."""

    count: int
    total: float
    largest: float
    middle: float
    smallest: float
    effective: float


def summarise(weights: Sequence[float]) -> Profile:
    """Summarise the weights, at least one."""
    scale = max(map(abs, weights)) or 1.0
    shares = [weight / scale for weight in weights]
    squares = sum(share * share for share in shares)
    effective = sum(shares) ** 2 / squares if squares > 0 else 0.0
    return Profile(len(weights), sum(weights), max(weights), median(weights), min(weights), effective)


def draw_weights(weights: Sequence[float]) -> Markup:
    """Draw one step for each point, sorted by weight. The axis starts at zero."""
    ranked, profile = sorted(weights, reverse=True), summarise(weights)
    top, bottom = max(profile.largest, 0.0) or 1.0, min(profile.smallest, 0.0)
    step = (WIDTH - LEFT - RIGHT) / len(ranked)

    def place(weight: float) -> float:
        return HEIGHT - BOTTOM - (weight - bottom) / (top - bottom) * (HEIGHT - TOP - BOTTOM)

    line = "".join(f"V{place(weight):.1f}H{LEFT + step * (rank + 1):.1f}" for rank, weight in enumerate(ranked))
    path = f"M{LEFT} {place(0.0):.1f}{line}V{place(0.0):.1f}"
    parts = [
        _draw_level(place(0.0), "0", "chart-axis"),
        _draw_level(place(profile.largest), format_number(profile.largest), "chart-grid"),
        Markup('<path class="chart-area" d="{}Z"/><path class="chart-line" d="{}"/>').format(path, path),
        Markup('<text x="{}" y="{}" text-anchor="end">{}, the heaviest first</text>').format(
            WIDTH - RIGHT, HEIGHT - 10, count_noun(profile.count, "point")
        ),
    ]
    label = Markup(
        '<svg class="chart small-chart" viewBox="0 0 {} {}" role="img" aria-label="Weights of {}, from {} to {}. The '
        'table has the figures.">'
    ).format(
        *(WIDTH, HEIGHT, count_noun(profile.count, "point")),
        *(format_number(profile.largest), format_number(profile.smallest)),
    )
    return label + Markup("").join(parts) + Markup("</svg>")


def _draw_level(y: float, text: str, name: str) -> Markup:
    return Markup(
        '<line class="{}" x1="{}" x2="{}" y1="{:.1f}" y2="{:.1f}"/><text x="{}" y="{:.1f}" text-anchor="end">{}</text>'
    ).format(name, LEFT, WIDTH - RIGHT, y, y, LEFT - 8, y + 4, text)
