"""Intervals of parameters as lines around zero."""

from collections.abc import Callable, Sequence
from typing import Final

from markupsafe import Markup

from app.releases.coefficients import Coefficient, Interval

WIDTH: Final = 220
HEIGHT: Final = 22
_MARGIN: Final = 6
_LINE: Final = Markup('<line class="{name}" x1="{x1:.1f}" x2="{x2:.1f}" y1="11" y2="11"/>')


def draw_intervals(coefficients: Sequence[Coefficient]) -> list[Markup]:
    """Draw the intervals of each parameter around zero, on a scale for each.

    Units differ between parameters, so lengths of two lines cannot be compared; their distance from zero can.
    """
    return [_draw(each) for each in coefficients]


def _draw(coefficient: Coefficient) -> Markup:
    wide = coefficient.noise_aware or coefficient.plain
    reach = max(abs(wide.low), abs(wide.high), abs(coefficient.plain.low), abs(coefficient.plain.high)) or 1.0

    def place(value: float) -> float:
        return WIDTH / 2 + value / reach * (WIDTH / 2 - _MARGIN)

    parts = [Markup('<line class="chart-zero" x1="{0}" x2="{0}" y1="2" y2="20"/>').format(WIDTH / 2)]
    if coefficient.noise_aware is not None:
        parts.append(_line("chart-wide", coefficient.noise_aware, place))
    parts.append(_line("chart-interval", coefficient.plain, place))
    parts.append(Markup('<circle class="chart-dot" cx="{:.1f}" cy="11" r="3.5"/>').format(place(coefficient.centre)))
    return (
        Markup('<svg class="interval" viewBox="0 0 {} {}" aria-hidden="true">').format(WIDTH, HEIGHT)
        + Markup("").join(parts)
        + Markup("</svg>")
    )


def _line(name: str, interval: Interval, place: Callable[[float], float]) -> Markup:
    return _LINE.format(name=name, x1=place(interval.low), x2=place(interval.high))
