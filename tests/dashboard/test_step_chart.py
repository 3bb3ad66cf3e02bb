"""Step charts of long histories: thinning, and the size of the picture."""

import itertools
import re
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from random import Random
from typing import Any

import pytest
import sqlalchemy as sa
from hypothesis import given
from hypothesis import strategies as st
from markupsafe import Markup

from app.audit.repository import RefusedJobs
from app.auth.caller import Caller
from app.budgets import service
from app.dashboard.charts.steps import MOST_EXACT, Refusals, Span, Step, draw_steps
from app.dashboard.charts.thinning import (
    MOST_INTERVALS,
    Box,
    Point,
    group_by_column,
    group_near,
    merge_boxes,
    thin_line,
)
from app.dashboard.ledger_history import make_spans, make_steps, write_csv
from app.dashboard.pages import population
from app.errors import Forbidden
from app.ledger import EntryFilter, LedgerEntry, LedgerStep
from tests.dashboard.conftest import Open
from tests.dashboard.html_checks import find_faults
from tests.factories import rows
from tests.factories.tampering import table
from tests.factories.worker import House

START = datetime(2029, 1, 1, tzinfo=UTC)
LARGEST = 200_000
"""Bytes of a picture."""
ENTRIES = 10_000
WIDTH, HEIGHT = 40, 20
POINTS = st.lists(st.builds(Point, st.floats(0, WIDTH), st.floats(0, HEIGHT)), min_size=1, max_size=60)


def _make_box(left: float, top: float, width: float, height: float) -> Box:
    return Box(left, top, min(WIDTH, left + width), min(HEIGHT, top + height))


def _boxes(most: int, width: int = 15) -> st.SearchStrategy[list[Box]]:
    floats = (st.floats(0, WIDTH - 1), st.floats(0, HEIGHT - 1), st.floats(0, width), st.floats(0, 4))
    return st.lists(st.builds(_make_box, *floats), max_size=most)


def _make_history(jobs: int, choose: Random, days: float = 365) -> list[LedgerStep]:
    """Jobs that overlap: each waits for minutes or days, and then is opened and settled, or voided."""
    events = list[tuple[float, str, str, float]]()
    for job in range(jobs):
        at, wait = choose.uniform(0, days), choose.choice((0.001, 0.02, 3.0)) * choose.random()
        cost, name = choose.random() * 2e-3, f"job_{job}"
        events.append((at, "reserved", name, cost))
        if choose.random() < 0.3:
            events.append((at + wait, "voided", name, -cost))
        else:
            events += [(at + wait, "opened", name, 0.0), (at + wait + 0.01, "settled", name, 0.0)]
    total, entries = 0.0, [LedgerStep(1, START, "account_opened", None, 0.0)]
    for at, kind, name, change in sorted(events):
        total = max(0.0, total + change)
        entries.append(LedgerStep(len(entries) + 1, START + timedelta(days=at), kind, name, total))
    return entries


def _draw(entries: Sequence[LedgerStep], refusals: Sequence[Refusals] = ()) -> str:
    end = entries[-1].at
    return draw_steps(make_steps(entries), make_spans(entries, end), refusals, 5.0, end)


def _read_line(svg: str) -> list[tuple[float, float]]:
    found = re.search(r'class="chart-line" d="M([0-9.]+) ([0-9.]+)([^"]*)"', svg)
    assert found is not None
    corners = re.findall(r"H([0-9.]+)V([0-9.]+)", found[3])
    return [(float(x), float(y)) for x, y in [(found[1], found[2]), *corners]]


@given(POINTS)
def test_a_thinned_line_keeps_ends_and_extremes_of_each_column(points: list[Point]) -> None:
    points.sort(key=lambda point: point.x)
    before = [*group_by_column(points, lambda point: point.x)]
    after = [*group_by_column(thin_line(points), lambda point: point.x)]
    for whole, kept in zip(before, after, strict=True):
        assert len(kept) <= 4
        assert (kept[0], kept[-1]) == (whole[0], whole[-1])
        heights, all_heights = ([point.y for point in group] for group in (kept, whole))
        assert (min(heights), max(heights)) == (min(all_heights), max(all_heights))


@given(POINTS)
def test_a_thinned_line_keeps_the_order_of_points(points: list[Point]) -> None:
    points.sort(key=lambda point: point.x)
    left = iter(points)
    assert all(kept in left for kept in thin_line(points))


@given(POINTS)
def test_crosses_do_not_cover_each_other(points: list[Point]) -> None:
    points.sort(key=lambda point: point.x)
    groups = [*group_near(points, lambda point: point.x, 8)]
    assert [point for group in groups for point in group] == points
    firsts = [group[0].x for group in groups]
    assert all(right - left >= 8 for left, right in itertools.pairwise(firsts))
    assert all(group[-1].x - group[0].x < 8 for group in groups)


@given(_boxes(30))
def test_merged_boxes_cover_each_box(boxes: list[Box]) -> None:
    merged = merge_boxes(boxes, WIDTH, HEIGHT)
    for box in boxes:
        for x in range(int(box.left), int(-(-box.right // 1))):
            assert any(
                each.left <= x < each.right and each.top <= box.top and box.bottom <= each.bottom for each in merged
            )


@given(_boxes(60))
def test_a_column_has_few_merged_intervals_that_touch_a_box(boxes: list[Box]) -> None:
    merged = merge_boxes(boxes, WIDTH, HEIGHT)
    for x in range(WIDTH):
        assert sum(each.left <= x < each.right for each in merged) <= MOST_INTERVALS
    for each in merged:
        assert any(
            box.left < each.right and each.left < box.right + 1 and each.top <= box.top + 1 and box.top < each.bottom
            for box in boxes
        )


@given(_boxes(MOST_INTERVALS))
def test_few_boxes_leave_their_gaps_uncovered(boxes: list[Box]) -> None:
    merged = merge_boxes(boxes, WIDTH, HEIGHT)
    cells = {(x, y) for each in merged for x in range(*_round(each)[:2]) for y in range(*_round(each)[2:])}
    assert cells == {(x, y) for each in boxes for x in range(*_round(each)[:2]) for y in range(*_round(each)[2:])}


def _round(box: Box) -> tuple[int, int, int, int]:
    """Columns and rows that a box touches; an empty box touches one."""
    left, top = int(box.left), int(box.top)
    return left, max(left + 1, int(-(-box.right // 1))), top, max(top + 1, int(-(-box.bottom // 1)))


@pytest.mark.parametrize("days", [0.01, 30, 3650])
def test_the_picture_of_ten_thousand_entries_is_small(days: float) -> None:
    entries = _make_history(ENTRIES * 10 // 27, Random(days), days)
    assert len(entries) > ENTRIES * 0.95
    refusals = [Refusals(START + timedelta(days=days * place / ENTRIES), 1) for place in range(ENTRIES)]
    assert len(_draw(entries, refusals).encode()) <= LARGEST


def test_the_picture_of_restless_entries_is_small() -> None:
    choose = Random(1)
    times = [START + timedelta(hours=place) for place in range(ENTRIES)]
    steps = [Step(at, choose.random() * 5, "x" * 20) for at in times]
    spans = [
        Span(at, at + timedelta(hours=choose.random() * 900), low := choose.random() * 4.9, low + 0.04) for at in times
    ]
    refusals = [Refusals(at, 1_000) for at in times]
    assert len(draw_steps(steps, spans, refusals, 5.0, times[-1]).encode()) <= LARGEST


def test_a_thinned_picture_has_every_peak_and_the_ends() -> None:
    choose = Random(2)
    entries = _make_history(2_000, choose)
    middle = len(entries) // 2
    peak = LedgerStep(middle, entries[middle].at, "limit_changed", None, 4.9)
    exact, thinned = (
        _read_line(_draw(each)) for each in (entries[:MOST_EXACT], [*entries[:middle], peak, *entries[middle:]])
    )
    assert len(exact) == MOST_EXACT
    assert len(thinned) < len(entries)
    highest = min(thinned, key=lambda corner: corner[1])
    assert highest[1] == pytest.approx(300 - 46 - 4.9 / 5.4 * 238, abs=0.06)
    assert (thinned[0][0], thinned[-1][0]) == (52, 746)


def test_points_of_a_thinned_picture_count_every_entry() -> None:
    entries = _make_history(1_000, Random(3))
    titles = re.findall(r'<circle class="chart-point"[^>]*><title>([^<]*)</title>', _draw(entries))
    counts = [re.match(r"([\d,]+) entries ", title) for title in titles]
    assert sum(int(count[1].replace(",", "")) if count else 1 for count in counts) == len(entries)


def test_crosses_count_every_refused_job() -> None:
    entries = _make_history(10, Random(4))
    refusals = [Refusals(START + timedelta(hours=place), 3) for place in range(1_000)]
    titles = re.findall(r'class="chart-refusal"[^>]*><title>(\d+) refused jobs', _draw(entries, refusals))
    assert sum(map(int, titles)) == 3_000


@pytest.mark.parametrize("seconds", [30, 601, 4 * 3600, 4 * 86_400, 400 * 86_400])
def test_the_times_of_the_axis_differ(seconds: int) -> None:
    chart = draw_steps([Step(START, 0.0, "step")], [], [], 1.0, START + timedelta(seconds=seconds))
    times = re.findall(r'y="294" text-anchor="\w+">([^<]+)<', chart)
    assert len(set(times)) == len(times) == 4


def test_a_clock_that_was_set_back_leaves_the_line_in_order() -> None:
    days = (0, 5, 2, 6)
    steps = [Step(START + timedelta(days=day), day / 10, "step") for day in days]
    places = [x for x, _ in _read_line(draw_steps(steps, [], [], 1.0, START + timedelta(days=8)))]
    assert places == sorted(places)


def test_a_reservation_before_the_first_entry_read_has_no_height() -> None:
    first = LedgerStep(7, START, "reserved", "job_1", 3.0)
    [span] = make_spans([first], START)
    assert (span.low, span.high) == (3.0, 3.0)


def _find_chart(page: str) -> str:
    return page[page.index('<svg class="chart"') : page.index("</svg>", page.index('<svg class="chart"'))]


def _append(house: House, dataset: str, entries: Sequence[LedgerStep]) -> None:
    """Append entries to the account's chain; their hashes do not verify."""
    ledger = table("ledger_entries")
    with house.database.write() as tx:
        account = tx.scalars(sa.select(table("ledger_datasets").c.account_id).filter_by(dataset_id=dataset)).one()
        common = {"account_id": account, "dataset_id": dataset, "body": {}, "entry_hash": "e", "previous_hash": "p"}
        values = [
            {
                **common,
                "sequence": each.sequence,
                "at": each.at,
                "kind": each.kind,
                "job_id": each.job_id,
                "epsilon_after": each.epsilon_after,
            }
            for each in entries
        ]
        tx.execute(sa.insert(ledger), values)


@pytest.fixture
def long_history(house: House, owner: rows.Key) -> str:
    dataset = house.ready_dataset(owner, name="long")
    _append(house, dataset, _make_history(300, Random(5))[1:])
    return dataset


def test_the_picture_has_all_entries_and_the_table_a_page(browse: Open, owner: rows.Key, long_history: str) -> None:
    browser = browse(owner)
    first = browser.get(f"/dashboard/populations/{long_history}").text
    [total] = map(int, re.findall(r"after the newest of (\d+) entries", first))
    assert total > MOST_EXACT
    assert find_faults(first) == []
    assert f"This picture of {total} entries is thinned" in first
    assert first.count('<th scope="row" class="number" data-label="No.">') == population.ROWS
    [cursor] = re.findall(r"cursor=([^&\"#]+)", first)
    second = browser.get(f"/dashboard/populations/{long_history}", params={"cursor": cursor}).text
    assert f"after the newest of {total} entries" in second
    assert len(browser.get(f"/dashboard/populations/{long_history}/entries.csv").text.splitlines()) == total + 1


def test_the_download_is_whole_and_read_page_by_page(
    house: House, browse: Open, owner: rows.Key, long_history: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked, read = list[int](), service.list_entries

    def list_entries(*arguments: Any, limit: int, **named: Any) -> Sequence[LedgerEntry]:
        asked.append(limit)
        return read(*arguments, limit=limit, **named)

    monkeypatch.setattr(population, "CSV_PAGE", 100)
    monkeypatch.setattr(service, "list_entries", list_entries)
    text = browse(owner).get(f"/dashboard/populations/{long_history}/entries.csv").text
    numbers = [int(line.split(",")[0]) for line in text.splitlines()[1:]]
    assert numbers == list(range(len(numbers), 0, -1))
    assert len(numbers) > 500
    assert set(asked) == {100}
    assert len(asked) == len(numbers) // 100 + 1


def test_pages_of_a_download_are_read_as_they_are_sent(house: House, owner: rows.Key, long_history: str) -> None:
    """Memory is bounded: a reader who stops after the first page leaves the others unread."""
    caller = Caller(owner.id, owner.role, "a key")
    pages = population._read_pages(house.services, caller, long_history, EntryFilter())
    lines = write_csv(pages)
    assert next(lines).startswith("sequence,at,kind,")
    assert next(lines).count("\n") <= population.CSV_PAGE
    lines.close()  # type: ignore[attr-defined]  # a generator


def test_a_long_chart_is_drawn_once_until_its_account_changes(
    house: House, browse: Open, owner: rows.Key, long_history: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    drawn, draw = list[int](), draw_steps

    def count(steps: Sequence[Step], *rest: Any) -> Markup:
        drawn.append(len(steps))
        return draw(steps, *rest)

    monkeypatch.setattr(population, "draw_steps", count)
    monkeypatch.setattr(population, "now", lambda: START + timedelta(days=400))
    browser, address = browse(owner), f"/dashboard/populations/{long_history}"
    first, second = (browser.get(address).text for _ in range(2))
    assert _find_chart(first) == _find_chart(second)
    assert len(drawn) == 1
    browser.get(address, params={"until": "2029-03-10"})
    assert len(drawn) == 2
    body = {"epsilon": 3.0, "delta": 1e-7}
    with house.client() as client:
        client.put(f"/v1/datasets/{house.ready_dataset(owner)}/budget", json=body, headers=owner.headers)
    browser.get(address)
    assert len(drawn) == 2  # another account
    _append(house, long_history, [LedgerStep(drawn[0] + 1, START + timedelta(days=399), "reserved", "j", 1.9)])
    assert _find_chart(browser.get(address).text) != _find_chart(first)
    assert drawn[2:] == [drawn[0] + 1]


def test_a_remembered_chart_ends_where_a_new_one_would(
    browse: Open, owner: rows.Key, long_history: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A unit of the picture is the largest difference."""
    moment = START + timedelta(days=400)
    monkeypatch.setattr(population, "now", lambda: moment)
    browser, address = browse(owner), f"/dashboard/populations/{long_history}"
    charts = list[str]()
    for days in (0, 0.1, 2):
        moment = START + timedelta(days=400 + days)
        charts.append(_find_chart(browser.get(address).text))
    assert charts[0] == charts[1] != charts[2]


def test_a_remembered_chart_is_not_shown_to_who_may_not_see_it(
    house: House, browse: Open, owner: rows.Key, analyst: rows.Key, long_history: str
) -> None:
    address, shared = f"/dashboard/populations/{long_history}", {"shared_with": [analyst.id]}
    with house.client() as client:
        client.patch(f"/v1/datasets/{long_history}", json=shared, headers=owner.headers).raise_for_status()
    assert 'class="chart"' in browse(owner).get(address).text
    assert 'class="chart"' not in browse(analyst).get(address).text


def test_a_remembered_chart_has_every_new_refusal(
    browse: Open, owner: rows.Key, auditor: rows.Key, long_history: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Owner and auditor see all marks, in any order of their visits."""

    def refuse(days: int, count: int) -> RefusedJobs:
        return RefusedJobs(f"aud_{days:026}", START + timedelta(days=days), None, long_history, count, None)

    refused = [refuse(2, 3)]
    monkeypatch.setattr(service, "list_refused_jobs", lambda *_, **__: refused)
    address, mark = f"/dashboard/populations/{long_history}", 'class="chart-refusal"'
    seen = [browse(key).get(address).text.count(mark) for key in (owner, auditor, owner)]
    refused.insert(0, refuse(30, 1))
    assert (seen, browse(auditor).get(address).text.count(mark)) == ([1, 1, 1], 2)


def test_steps_are_refused_to_keys_that_may_only_use_the_dataset(
    house: House, owner: rows.Key, analyst: rows.Key
) -> None:
    dataset = house.ready_dataset(owner, shared_with=(analyst.id,))
    with house.database.read() as session:
        assert service.list_steps(
            session, house.ledger, Caller(owner.id, owner.role, "a key"), dataset, limit=9, until=None
        )
        with pytest.raises(Forbidden):
            service.list_steps(
                session, house.ledger, Caller(analyst.id, analyst.role, "a key"), dataset, limit=9, until=None
            )


def test_a_picture_of_few_entries_is_not_thinned(house: House, browse: Open, owner: rows.Key) -> None:
    dataset = house.ready_dataset(owner)
    assert "is thinned" not in browse(owner).get(f"/dashboard/populations/{dataset}").text


def test_the_picture_has_the_days_of_the_filter_and_all_kinds(browse: Open, owner: rows.Key, long_history: str) -> None:
    wanted = {"since": "2029-03-01", "until": "2029-03-10", "kind": "reserved"}
    page = browse(owner).get(f"/dashboard/populations/{long_history}", params=wanted).text
    assert "The picture has entries of all kinds." in page
    points = page.count('class="chart-point"')
    assert page.count('<th scope="row" class="number" data-label="No.">') < points < 100


def test_a_cut_picture_states_its_first_entry(
    browse: Open, owner: rows.Key, long_history: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(population, "MOST_STEPS", 50)
    page = browse(owner).get(f"/dashboard/populations/{long_history}").text
    assert "after the newest of 50 entries" in page
    assert "The picture begins with entry" in page
