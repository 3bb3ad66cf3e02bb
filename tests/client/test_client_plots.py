"""Pictures have the numbers of releases and budgets."""

import sys
from collections.abc import Callable, Iterator
from typing import Any

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
import pytest
from corevault import Budget, InvalidArgument, MissingDependency, Pseudocoreset, Release, example

from tests.client.test_client_texts import BUDGET as EXAMPLE

BUDGET: dict[str, Any] = dict(EXAMPLE)


@pytest.fixture(autouse=True)
def _without_screen() -> Iterator[None]:
    mpl.use("Agg")
    yield
    plt.close("all")


def test_the_forest_has_both_intervals_of_each_coefficient() -> None:
    core = example()
    axes = core.plot.forest(level=0.9)
    wide, narrow = (np.array(each.get_segments()) for each in axes.collections)
    np.testing.assert_allclose(wide[:, :, 0], core.posterior().intervals(0.9))
    np.testing.assert_allclose(narrow[:, :, 0], core.posterior(noise=False).intervals(0.9))
    assert [label.get_text() for label in axes.get_yticklabels()] == list(core.columns)
    assert "90% intervals" in axes.get_title(loc="left")


def test_the_forest_warns_of_a_release_that_is_not_calibrated() -> None:
    core = example()
    body = dict(core.release.raw) | {"reliability": {"grade": "centre-only", "reasons": []}}
    axes = Pseudocoreset(Release.from_json(body), core.u, core.y, core.weight).plot.forest(original=True)
    assert "centre-only: do not use them" in axes.get_title(loc="left")
    assert len(axes.collections) == 1
    assert "original units" in axes.get_xlabel()


def test_weights_are_drawn_from_large_to_small() -> None:
    core = example()
    _, given = plt.subplots()
    axes = core.plot.weights(ax=given)
    assert axes is given
    bars: list[Any] = list(axes.patches)
    np.testing.assert_allclose(np.array([bar.get_height() for bar in bars]), np.sort(core.weight)[::-1])
    assert f"{core.weight.sum():,.0f} rows" in axes.get_title(loc="left")


def test_pairs_have_an_ellipse_with_and_without_noise() -> None:
    core = example()
    figure = core.plot.pairs(["smoker", "age"], level=0.9)
    below = figure.axes[2]
    assert (below.get_xlabel(), below.get_ylabel()) == ("smoker", "age")
    fit = core.posterior()
    points = np.array(below.lines[0].get_data()) - fit.mean[[1, 0]][:, None]
    inverse = np.linalg.inv(fit.covariance[np.ix_([1, 0], [1, 0])])
    np.testing.assert_allclose(np.einsum("in,ij,jn->n", points, inverse, points), -2 * np.log(0.1))
    assert len(example("multinomial-logistic").plot.pairs().axes) == 64


def test_the_budget_shows_spent_reserved_and_limit() -> None:
    members: dict[str, Any] = BUDGET | {"reserved": {"epsilon": 0.3, "delta": 1e-6}}
    axes = Budget.from_json(members).plot()
    widths = [bar.get_width() for bar in axes.patches]
    np.testing.assert_allclose(widths, [members["limit"]["epsilon"], members["spent"]["epsilon"], 0.3])
    assert axes.patches[2].get_x() == members["spent"]["epsilon"]
    labels = {text.get_text() for text in axes.get_legend().get_texts()}
    assert "reserved 0.3" in labels
    assert len(Budget.from_json(BUDGET).plot().patches) == 2


def test_wrong_arguments_of_pictures_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    plot = example().plot
    wrong: Any = "age"
    calls: tuple[tuple[Callable[[], object], str], ...] = (
        (lambda: plot.pairs(wrong), "must be a list"),
        (lambda: plot.pairs(["AGE"]), "no coefficient 'AGE'"),
        (lambda: plot.pairs([]), "1 to 8"),
        (lambda: plot.weights(ax=wrong), "axes of matplotlib"),
    )
    for call, sentence in calls:
        with pytest.raises(InvalidArgument, match=sentence):
            call()
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    with pytest.raises(MissingDependency, match=r"matplotlib is needed for pictures: pip install 'corevault\[plot\]'"):
        plot.forest()
