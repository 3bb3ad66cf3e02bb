"""Charts of a release: the weights, and pairs of columns in the table's units."""

import re
from typing import Any

import pytest

from app.dashboard.charts.pairs import GAP, LEFT, MARGIN, MOST_POINTS, PANEL, draw_pairs
from app.dashboard.charts.weights import HEIGHT, WIDTH, draw_weights, summarise
from tests.dashboard.appearance import check_appearance
from tests.dashboard.conftest import Open, Visit
from tests.dashboard.html_checks import find_faults
from tests.dashboard.test_releases import _publish
from tests.factories import rows
from tests.factories.worker import House

HOSTILE = "<script>alert('x')</script>"
COLUMNS = ("age", "hours", "sex=Male", "intercept", "y", "weight")
DESIGN: list[dict[str, Any]] = [
    {"name": "age", "source": "age", "transform": {"kind": "affine", "center": 50.0, "scale": 40.0}},
    {"name": "hours", "source": "hours", "transform": {"kind": "affine", "center": 20.0, "scale": 20.0}},
    {"name": "sex=Male", "source": "sex", "transform": {"kind": "indicator", "value": "Male"}},
    {"name": "intercept", "transform": {"kind": "constant", "value": 1}},
]
POINTS = [(-1.0, 0.0, 1.0, 1.0, 0.0, 10.0), (1.0, 1.5, 0.0, 1.0, 1.0, 40.0)]


def _circles(svg: str) -> list[tuple[str, float, float, float]]:
    found = re.findall(r'<circle class="([a-z-]+)" cx="([0-9.-]+)" cy="([0-9.-]+)" r="([0-9.]+)"/>', svg)
    return [(name, float(x), float(y), float(radius)) for name, x, y, radius in found]


def test_the_figures_of_weights_agree_with_their_definitions() -> None:
    profile = summarise([4.0, 1.0, 1.0, 2.0])
    assert (profile.count, profile.total, profile.largest, profile.smallest) == (4, 8.0, 4.0, 1.0)
    assert profile.middle == 1.5
    assert profile.effective == pytest.approx(64 / 22)
    assert summarise([3.0] * 7).effective == pytest.approx(7)
    assert summarise([0.0, 0.0]).effective == 0


@pytest.mark.parametrize("weights", [[1.0], [5.0, 1.0, 3.0], [0.0, 0.0], [2.0, -1.0], [1e300, 1e-300]])
def test_a_chart_of_weights_falls_and_stays_in_its_frame(weights: list[float]) -> None:
    path = re.search(r'class="chart-line" d="([^"]*)"', draw_weights(weights))
    assert path is not None
    levels = [float(each) for each in re.findall(r"V([0-9.-]+)H", path[1])]
    assert len(levels) == len(weights)
    assert levels == sorted(levels)
    assert all(0 <= each <= HEIGHT for each in levels)
    assert all(0 <= float(each) <= WIDTH for each in re.findall(r"H([0-9.-]+)", path[1]))


def test_pairs_are_in_the_units_of_the_table() -> None:
    plot = draw_pairs(COLUMNS, POINTS, DESIGN)
    assert plot is not None
    assert (plot.names, plot.marks_target) == (("age", "hours", "sex=Male"), True)
    for text in (">10<", ">90<", ">0<", ">40<"):  # the bounds
        assert text in plot.svg
    first, second, *others = _circles(plot.svg)
    assert len(others) == 4
    assert (first[0], second[0]) == ("chart-mark-empty", "chart-mark")
    assert second[3] == 2 * first[3]  # four times the area
    assert first[1] == pytest.approx(LEFT + MARGIN)
    assert second[1] == pytest.approx(LEFT + PANEL - MARGIN)
    assert first[2] > second[2]


def test_a_numeric_target_is_a_column_and_columns_are_few() -> None:
    names = [f"x{index}" for index in range(9)]
    design = [{"name": name, "transform": {"kind": "affine", "center": 0.0, "scale": 1.0}} for name in names]
    points = [[index / 9 for index in range(9)] + [value, 1.0] for value in (1.5, 2.5, 7.0)]
    plot = draw_pairs([*names, "y", "weight"], points, design)
    assert plot is not None
    assert plot.names == ("x0", "x1", "x2", "target")
    assert len(_circles(plot.svg)) == 3 * 6
    assert not plot.marks_target
    edge = LEFT + 3 * (PANEL + GAP)
    assert all(0 < x < edge and 0 < y < edge for _, x, y, _ in _circles(plot.svg))


@pytest.mark.parametrize(
    ("columns", "points", "design"),
    [
        (COLUMNS, [], DESIGN),
        (COLUMNS, POINTS, []),
        (COLUMNS, POINTS, DESIGN[:1]),
        (COLUMNS, POINTS * MOST_POINTS, DESIGN),
        (COLUMNS, [(1e308, 1e308, 0.0, 1.0, 1.0, 1.0)], DESIGN),
    ],
    ids=["no points", "no design", "one column", "too many points", "overflow"],
)
def test_a_plot_that_makes_no_sense_is_left_out(columns: Any, points: Any, design: Any) -> None:
    assert draw_pairs(columns, points, design) is None


def test_names_in_a_plot_are_escaped_and_short() -> None:
    design = [{**DESIGN[0], "name": HOSTILE}, {**DESIGN[1], "name": "h" * 60}]
    plot = draw_pairs((HOSTILE, "h" * 60, "weight"), [(0.0, 0.5, 1.0)], design)
    assert plot is not None
    assert "<script" not in plot.svg
    assert f"{'h' * 19}…<" in plot.svg
    assert "style=" not in plot.svg


def test_the_page_shows_charts_and_says_that_points_are_not_people(house: House, browse: Open, owner: rows.Key) -> None:
    page = browse(owner).get(f"/dashboard/releases/{_publish(house, owner)}").text
    assert find_faults(page) == []
    for words in ("No point is a person.", "Effective size", "Pairs of columns", "Weights of 6 points"):
        assert words in page
    assert len(_circles(page.partition("Pairs of columns")[2])) == 6 * 3


def test_public_points_may_be_rows_and_the_page_says_so(house: House, browse: Open, owner: rows.Key) -> None:
    dataset = house.ready_dataset(owner, sensitivity="public")
    job = house.job(dataset, owner, method="uniform", privacy=None, parameters={})
    house.run(job)
    page = browse(owner).get(f"/dashboard/releases/{house.read(job).release_id}").text
    assert "No point is a person" not in page
    assert "points may be rows of the table" in page


@pytest.mark.process
@pytest.mark.browser
@pytest.mark.long
def test_a_release_page_has_no_accessibility_fault(house: House, visit: Visit, owner: rows.Key) -> None:
    check_appearance(visit(owner, f"/dashboard/releases/{_publish(house, owner)}"))
