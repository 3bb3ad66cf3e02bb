"""Pooling releases averages log-likelihoods. Releases no better than the prior fail the demo."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from corevault import Pseudocoreset, Release

from demo import posteriors, table
from demo.failure import DemoFailed
from tests.client.fake import TIME


def _core(flip: bool = False, weight: float = 200.0) -> Pseudocoreset:
    """Points that agree with the table below, or with inverted targets."""
    rng = np.random.default_rng(5)
    names = table.SCHEMA.names[:-1]
    unit = {"kind": "affine", "type": "real", "center": 0.5, "scale": 0.5}
    design = [{"name": name, "source": name, "transform": unit} for name in names] + [
        {"name": "intercept", "transform": {"kind": "constant", "value": 1}}
    ]
    release = Release.from_json(
        {"id": "rel_1", "dataset_id": "ds_1", "method": "dp-psvi", "size": 50, "design": design, "created_at": TIME}
        | {"model": {"family": "logistic-regression", "prior": {"scale": 1.0}}}
    )
    u = np.column_stack([rng.uniform(-1, 1, (50, len(names))), np.ones(50)])
    y = ((u[:, 0] > 0) != flip).astype(float)
    return Pseudocoreset(release, u, y, np.full(50, weight / 50))


def _tables() -> table.Tables:
    rng = np.random.default_rng(6)
    frame = pd.DataFrame({name: rng.random(200) for name in table.SCHEMA.names[:-1]})
    frame[table.TARGET] = (frame["lncoins"] > 0.5).astype(int)
    return table.Tables(train=frame, held_out=frame)


def test_pooling_one_release_with_itself_changes_nothing() -> None:
    core = _core()
    pooled, alone = posteriors.pool([core, core]), core.laplace()
    np.testing.assert_allclose(pooled.mean, alone.mean, atol=1e-9)
    np.testing.assert_allclose(pooled.covariance, alone.covariance, atol=1e-9)


def test_pooling_is_the_posterior_of_the_mean_of_the_log_likelihoods() -> None:
    core = _core()
    weightless = replace(core, weight=0 * core.weight)
    halved = replace(core, weight=core.weight / 2)
    np.testing.assert_allclose(posteriors.pool([core, weightless]).mean, halved.laplace().mean, atol=1e-9)


def test_releases_of_the_table_are_closer_than_the_prior() -> None:
    comparison = posteriors.compare([_core()], _tables())
    assert comparison.single_kl[0] < comparison.prior_kl
    assert comparison.accuracy["first release"] > 0.8
    assert comparison.full.kl(comparison.full) == pytest.approx(0.0, abs=1e-9)


def test_a_release_with_inverted_targets_fails_the_demo() -> None:
    with pytest.raises(DemoFailed, match="not closer"):
        posteriors.compare([_core(flip=True)], _tables())
