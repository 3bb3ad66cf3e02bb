"""The designs match their descriptions, and census components are white."""

from pathlib import Path

import numpy as np
import pytest

from benchmarks.adult import NUMBERS, TEST, TRAIN, MissingData, load_adult10, require
from benchmarks.designs import draw_bnd15, draw_bnd40
from benchmarks.unseen import LAWS, draw_unseen


@pytest.mark.parametrize(("design", "width"), [(draw_bnd15, 14), (draw_bnd40, 39)])
def test_bounded_designs_are_within_bounds_and_have_rare_levels(design: object, width: int) -> None:
    assert callable(design)
    x, y = design(20_000)
    assert x.shape == (20_000, width)
    assert np.abs(x).max() <= 1
    assert set(np.unique(y)) == {0, 1}
    indicators = x[:, np.isin(x, (0, 1)).all(axis=0)]
    assert 0 < indicators.mean(axis=0).min() < 0.02


@pytest.mark.parametrize("name", LAWS)
def test_tables_of_every_law_are_within_bounds_and_have_both_labels(name: str) -> None:
    x, y = draw_unseen(name, n=3_000)
    assert np.all(np.isfinite(x))
    assert np.abs(x).max() <= LAWS[name].bound
    assert set(np.unique(y)) == {0, 1}
    assert np.array_equal(draw_unseen(name, n=3_000).x, x)
    assert not np.array_equal(draw_unseen(name, n=3_000, seed=1).x, x)


def _census(path: Path, n: int, seed: int) -> Path:
    """Random rows in the census's format. Every fifth row has a missing value."""
    rng = np.random.default_rng(seed)
    cells = np.where(
        np.isin(np.arange(14), NUMBERS), rng.integers(1, 90, (n, 14)).astype(str), rng.choice(["a", "b", "c"], (n, 14))
    )
    cells[::5, 1] = "?"
    labels = rng.choice(["<=50K", ">50K."], n)
    path.write_text("".join(f"{', '.join(row)}, {label}\n" for row, label in zip(cells, labels, strict=True)))
    return path


@pytest.mark.slow
def test_census_components_are_white(tmp_path: Path) -> None:
    """The components of generated rows, and of the census if its files exist."""
    generated = _census(tmp_path / "train.csv", 500, 0), _census(tmp_path / "test.csv", 200, 1), (400, 160)
    census = [(TRAIN, TEST, (30_162, 15_060))] if TRAIN.exists() else []
    for train, test, sizes in (generated, *census):
        (x, y), (held_out, labels) = load_adult10(train, test)
        assert (x.shape, held_out.shape) == ((sizes[0], 10), (sizes[1], 10))
        np.testing.assert_allclose(np.cov(x, rowvar=False), np.eye(10), atol=1e-8)
        np.testing.assert_allclose(x.mean(axis=0), 0, atol=1e-9)
        assert set(np.unique(y)) == set(np.unique(labels)) == {0.0, 1.0}
        if train == TRAIN:
            assert (int(y.sum()), int(labels.sum())) == (7_508, 3_700)


def test_a_missing_file_is_named() -> None:
    with pytest.raises(MissingData, match=r"nowhere\.csv"):
        require(TRAIN.with_name("nowhere.csv"))
