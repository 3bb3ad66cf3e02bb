"""The designs are what their descriptions say, and the census is white."""

import numpy as np
import pytest

from benchmarks.adult import TRAIN, MissingData, adult10, required
from benchmarks.designs import bnd15, bnd40


@pytest.mark.parametrize(("design", "width"), [(bnd15, 14), (bnd40, 39)])
def test_bounded_designs_stay_within_their_bounds_and_have_rare_levels(design: object, width: int) -> None:
    assert callable(design)
    x, y = design(20_000)
    assert x.shape == (20_000, width)
    assert np.abs(x).max() <= 1
    assert set(np.unique(y)) == {0, 1}
    indicators = x[:, np.isin(x, (0, 1)).all(axis=0)]
    assert 0 < indicators.mean(axis=0).min() < 0.02


@pytest.mark.skipif(not TRAIN.exists(), reason="the census files are not beside the repository")
def test_census_components_are_white() -> None:
    (x, y), (held_out, labels) = adult10()
    assert (x.shape, held_out.shape) == ((30_162, 10), (15_060, 10))
    np.testing.assert_allclose(np.cov(x, rowvar=False), np.eye(10), atol=1e-8)
    np.testing.assert_allclose(x.mean(axis=0), 0, atol=1e-9)
    assert (int(y.sum()), int(labels.sum())) == (7_508, 3_700)


def test_a_missing_file_is_named() -> None:
    with pytest.raises(MissingData, match=r"nowhere\.csv"):
        required(TRAIN.with_name("nowhere.csv"))
