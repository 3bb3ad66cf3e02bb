"""A step chart of the composed cost: one step for each ledger entry."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from markupsafe import Markup

from app.dashboard.wording import count_noun, format_number

WIDTH: Final = 760
HEIGHT: Final = 300
LEFT: Final = 52
RIGHT: Final = 14
TOP: Final = 16
BOTTOM: Final = 46
_TICKS: Final = (1, 2, 2.5, 5, 10)


@dataclass(frozen=True, slots=True)
class Step:
    """The composed epsilon from ``at`` on. ``title`` describes the entry."""

    at: datetime
    epsilon: float
    title: str


@dataclass(frozen=True, slots=True)
class Span:
    """A reservation until it was opened or voided. ``low`` is the epsilon without it."""

    start: datetime
    end: datetime
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Refusals:
    """Jobs that the budget did not cover, at one time."""

    at: datetime
    count: int


@dataclass(frozen=True, slots=True)
class _Scale:
    start: datetime
    seconds: float
    top: float

    def x(self, at: datetime) -> float:
        share = min(1.0, max(0.0, (at - self.start).total_seconds() / self.seconds))
        return LEFT + share * (WIDTH - LEFT - RIGHT)

    def y(self, epsilon: float) -> float:
        return HEIGHT - BOTTOM - epsilon / self.top * (HEIGHT - TOP - BOTTOM)


def draw_steps(
    steps: Sequence[Step], spans: Sequence[Span], refusals: Sequence[Refusals], limit: float, end: datetime
) -> Markup:
    """Draw the chart.

    Args:
        steps: oldest first, at least one.
        spans: reservations, drawn with a hatch.
        refusals: drawn as crosses below the axis.
        limit: the present limit, a dashed line.
        end: right end of the time axis.
    """
    start = steps[0].at
    largest = max(limit, *(step.epsilon for step in steps))
    scale = _Scale(start, max(1.0, (end - start).total_seconds()), largest * 1.08 or 1.0)
    parts = [*_draw_grid(scale), *_draw_times(scale, start, end), *_draw_spans(scale, spans)]
    parts += [*_draw_line(scale, steps, end), *_draw_limit(scale, limit), *_draw_refusals(scale, refusals, start)]
    label = Markup(
        '<svg class="chart" viewBox="0 0 {} {}" role="img" aria-label="Composed epsilon over time: {} after the newest '
        'of {}, limit {}. The table below has the numbers.">'
    ).format(WIDTH, HEIGHT, format_number(steps[-1].epsilon), f"{len(steps):,} entries", format_number(limit))
    return label + Markup("").join(parts) + Markup("</svg>")


def _draw_grid(scale: _Scale) -> Iterator[Markup]:
    step = _choose_step(scale.top)
    for index in range(int(scale.top / step) + 1):
        y = scale.y(index * step)
        name = "chart-grid" if index else "chart-axis"
        yield Markup('<line class="{}" x1="{}" x2="{}" y1="{:.1f}" y2="{:.1f}"/>').format(
            name, LEFT, WIDTH - RIGHT, y, y
        )
        yield Markup('<text x="{}" y="{:.1f}" text-anchor="end">{}</text>').format(
            LEFT - 8, y + 4, format_number(index * step)
        )
    yield Markup('<text x="4" y="12">ε</text>')


def _choose_step(top: float) -> float:
    """Choose a round distance between grid lines, for about five lines."""
    size = 1.0
    while size > top / 5:
        size /= 10
    while size * 10 <= top / 5:
        size *= 10
    return next(size * factor for factor in _TICKS if top / (size * factor) <= 6)


def _draw_times(scale: _Scale, start: datetime, end: datetime) -> Iterator[Markup]:
    form = "%Y-%m-%d" if scale.seconds > 3 * 86_400 else "%m-%d %H:%M"
    for index, anchor in enumerate(("start", "middle", "middle", "end")):
        at = start + (end - start) * (index / 3)
        yield Markup('<text x="{:.1f}" y="{}" text-anchor="{}">{}</text>').format(
            scale.x(at), HEIGHT - 6, anchor, at.strftime(form)
        )


def _draw_spans(scale: _Scale, spans: Sequence[Span]) -> Iterator[Markup]:
    for span in spans:
        x, y = scale.x(span.start), scale.y(span.high)
        width, height = max(2.0, scale.x(span.end) - x), scale.y(span.low) - y
        yield Markup(
            '<rect class="chart-reserved" fill="url(#hatch)" x="{:.1f}" y="{:.1f}" width="{:.1f}" height="{:.1f}"/>'
        ).format(x, y, width, max(0.0, height))


def _draw_line(scale: _Scale, steps: Sequence[Step], end: datetime) -> Iterator[Markup]:
    x, y = scale.x(steps[0].at), scale.y(steps[0].epsilon)
    path = [f"M{x:.1f} {y:.1f}"]
    path += [f"H{scale.x(step.at):.1f}V{scale.y(step.epsilon):.1f}" for step in steps[1:]]
    path.append(f"H{scale.x(end):.1f}")
    line = "".join(path)
    yield Markup('<path class="chart-area" d="{}V{:.1f}H{:.1f}Z"/>').format(line, scale.y(0), x)
    yield Markup('<path class="chart-line" d="{}"/>').format(line)
    for step in steps:
        yield Markup('<circle class="chart-point" cx="{:.1f}" cy="{:.1f}" r="3"><title>{}</title></circle>').format(
            scale.x(step.at), scale.y(step.epsilon), step.title
        )


def _draw_limit(scale: _Scale, limit: float) -> Iterator[Markup]:
    y = scale.y(limit)
    yield Markup('<line class="chart-limit" x1="{}" x2="{}" y1="{:.1f}" y2="{:.1f}"/>').format(
        LEFT, WIDTH - RIGHT, y, y
    )
    yield Markup('<text x="{}" y="{:.1f}" text-anchor="end">limit {}</text>').format(
        WIDTH - RIGHT, y - 6, format_number(limit)
    )


def _draw_refusals(scale: _Scale, refusals: Sequence[Refusals], start: datetime) -> Iterator[Markup]:
    y = HEIGHT - BOTTOM + 14
    for each in refusals:
        if each.at >= start:
            x = scale.x(each.at)
            yield Markup(
                '<path class="chart-refusal" d="M{0:.1f} {2:.1f}l8 8M{1:.1f} {2:.1f}l-8 8"><title>{3}</title></path>'
            ).format(x - 4, x + 4, y - 4, f"{count_noun(each.count, 'refused job')} at {each.at:%Y-%m-%d %H:%M}")
