"""A step chart of the composed cost: one step for each ledger entry.

A picture of more than :data:`MOST_EXACT` entries is thinned. Its line keeps four entries of each column of a unit: the
first, last, lowest and highest. A point may represent several entries, and reservations are merged.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import accumulate
from typing import Final

from markupsafe import Markup

from app.dashboard.charts.thinning import Box, Point, group_by_column, group_near, merge_boxes, thin_line
from app.dashboard.wording import count_noun, format_number

WIDTH: Final = 760
HEIGHT: Final = 300
LEFT: Final = 52
RIGHT: Final = 14
TOP: Final = 16
BOTTOM: Final = 46
MOST_EXACT: Final = 500
"""Entries of the largest picture that is not thinned."""
_MARK: Final = 6
"""Units that a point covers. A thinned picture has at most one in each."""
_CROSS: Final = 8
"""Units between crosses; nearer ones would cover each other."""
_TICKS: Final = (1, 2, 2.5, 5, 10)
_TIMES: Final = ((3 * 86_400, "%Y-%m-%d"), (600, "%m-%d %H:%M"))
"""Forms of times on an axis that is longer than the seconds. Its four times differ."""
_SHORT_TIME: Final = "%H:%M:%S"


@dataclass(frozen=True, slots=True)
class Step:
    """The composed epsilon from ``at`` on. ``title`` names the kind of entry."""

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


def is_thinned(entries: int) -> bool:
    """Whether a picture of so many entries is thinned."""
    return entries > MOST_EXACT


def draw_steps(
    steps: Sequence[Step], spans: Sequence[Span], refusals: Sequence[Refusals], limit: float, end: datetime
) -> Markup:
    """Draw the chart.

    Args:
        steps: in the order of the chain, at least one.
        spans: reservations, drawn with a hatch.
        refusals: oldest first, drawn as crosses below the axis. Crosses that would overlap become one.
        limit: the present limit, a dashed line.
        end: right end of the time axis.
    """
    start, thin = steps[0].at, is_thinned(len(steps))
    largest = max(limit, *(step.epsilon for step in steps))
    scale = _Scale(start, max(1.0, (end - start).total_seconds()), largest * 1.08 or 1.0)
    corners = _place(scale, steps)
    parts = [*_draw_grid(scale), *_draw_times(scale, start, end)]
    parts += _draw_merged(scale, spans) if thin else _draw_spans(scale, spans)
    parts += _draw_line(thin_line(corners) if thin else corners, scale, end)
    parts += _draw_groups(corners, steps) if thin else _draw_points(corners, steps)
    parts += [*_draw_limit(scale, limit), *_draw_refusals(scale, refusals, start)]
    label = Markup(
        '<svg class="chart" viewBox="0 0 {} {}" role="img" aria-label="Composed epsilon over time: {} after the newest '
        'of {}, limit {}. The table below has the numbers.">'
    ).format(WIDTH, HEIGHT, format_number(steps[-1].epsilon), f"{len(steps):,} entries", format_number(limit))
    return label + Markup("").join(parts) + Markup("</svg>")


def _place(scale: _Scale, steps: Sequence[Step]) -> list[Point]:
    """The corners of the line. A step whose clock was behind has the x of the step before it."""
    places = accumulate((scale.x(step.at) for step in steps), max)
    return [Point(x, scale.y(step.epsilon)) for x, step in zip(places, steps, strict=True)]


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
    form = next((form for seconds, form in _TIMES if scale.seconds > seconds), _SHORT_TIME)
    for index, anchor in enumerate(("start", "middle", "middle", "end")):
        at = start + (end - start) * (index / 3)
        yield Markup('<text x="{:.1f}" y="{}" text-anchor="{}">{}</text>').format(
            scale.x(at), HEIGHT - 6, anchor, at.strftime(form)
        )


def _frame(scale: _Scale, span: Span) -> Box:
    left, top = scale.x(span.start), scale.y(span.high)
    return Box(left, top, max(left + 2.0, scale.x(span.end)), max(top, scale.y(span.low)))


def _draw_spans(scale: _Scale, spans: Sequence[Span]) -> Iterator[Markup]:
    for span in spans:
        box = _frame(scale, span)
        yield Markup(
            '<rect class="chart-reserved" fill="url(#hatch)" x="{:.1f}" y="{:.1f}" width="{:.1f}" height="{:.1f}"/>'
        ).format(box.left, box.top, box.right - box.left, box.bottom - box.top)


def _draw_merged(scale: _Scale, spans: Sequence[Span]) -> Iterator[Markup]:
    boxes = merge_boxes([_frame(scale, span) for span in spans], WIDTH, HEIGHT - BOTTOM)
    parts = (f"M{x:.0f} {y:.0f}h{right - x:.0f}v{bottom - y:.0f}h{x - right:.0f}z" for x, y, right, bottom in boxes)
    yield Markup('<path class="chart-reserved" fill="url(#hatch)" d="{}"/>').format("".join(parts))


def _draw_line(corners: Sequence[Point], scale: _Scale, end: datetime) -> Iterator[Markup]:
    first = corners[0]
    path = [f"M{first.x:.1f} {first.y:.1f}", *(f"H{x:.1f}V{y:.1f}" for x, y in corners[1:]), f"H{scale.x(end):.1f}"]
    line = "".join(path)
    yield Markup('<path class="chart-area" d="{}V{:.1f}H{:.1f}Z"/>').format(line, scale.y(0), first.x)
    yield Markup('<path class="chart-line" d="{}"/>').format(line)


def _draw_points(corners: Sequence[Point], steps: Sequence[Step]) -> Iterator[Markup]:
    for corner, step in zip(corners, steps, strict=True):
        yield _draw_point(corner, f"{step.title}: ε {format_number(step.epsilon)}")


def _draw_groups(corners: Sequence[Point], steps: Sequence[Step]) -> Iterator[Markup]:
    """Draw a point for the last entry of each column. Its title describes all of them."""
    for group in group_by_column([*zip(corners, steps, strict=True)], lambda each: each[0].x, _MARK):
        corner, last = group[-1]
        if len(group) == 1:
            yield _draw_point(corner, f"{last.title}: ε {format_number(last.epsilon)}")
            continue
        amounts = [step.epsilon for _, step in group]
        low, high = format_number(min(amounts)), format_number(max(amounts))
        title = f"{len(group):,} entries{_describe_time(group[0][1].at, last.at)}: ε {low} to {high}"
        yield _draw_point(corner, title)


def _draw_point(corner: Point, title: str) -> Markup:
    return Markup('<circle class="chart-point" cx="{:.1f}" cy="{:.1f}" r="3"><title>{}</title></circle>').format(
        corner.x, corner.y, title
    )


def _describe_time(first: datetime, last: datetime) -> str:
    begin, end = f"{first:%Y-%m-%d %H:%M}", f"{last:%Y-%m-%d %H:%M}"
    return f" at {begin}" if begin == end else f" from {begin} to {end}"


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
    seen = [each for each in refusals if each.at >= start]
    for group in group_near(seen, lambda each: scale.x(each.at), _CROSS):
        x, count = scale.x(group[0].at), sum(each.count for each in group)
        title = f"{count_noun(count, 'refused job')}{_describe_time(group[0].at, group[-1].at)}"
        yield Markup(
            '<path class="chart-refusal" d="M{0:.1f} {2:.1f}l8 8M{1:.1f} {2:.1f}l-8 8"><title>{3}</title></path>'
        ).format(x - 4, x + 4, y - 4, title)
