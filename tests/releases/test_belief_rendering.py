"""The three formats contain the same belief, and equal beliefs give equal bytes."""

import io
import json
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest

from app.errors import Internal
from app.inference.core.belief import Block
from app.inference.core.release import Posterior, Pseudocoreset
from app.releases.http.belief_rendering import render_belief
from app.releases.http.formats import STORED_NAMES, Part

NAMES = ("age", 'sex=Ma,le "x"', "intercept")
COVARIANCE = np.array([[4.0, 1 / 3, 0.0], [1 / 3, 1e-9, -0.25], [0.0, -0.25, 2.0]])


def _points(**fields: Any) -> Pseudocoreset:
    return Pseudocoreset(np.ones((2, 3)), None, np.ones(2), (), **fields)


def _belief(**changes: Any) -> tuple[Block, ...]:
    posterior = Posterior(NAMES, np.array([0.1, -2.0, 1e300]), 3 * COVARIANCE)
    return _points(**({"posterior": posterior, "doubt": COVARIANCE} | changes)).make_blocks(NAMES)


def _read_parquet(content: bytes) -> dict[tuple[str, str], Any]:
    rows = pq.read_table(io.BytesIO(content)).to_pylist()
    return {
        (row["block"], row["array"]): np.array(row["texts"] if row["numbers"] is None else row["numbers"]).reshape(
            row["shape"]
        )
        for row in rows
    }


def test_every_representation_holds_the_same_arrays() -> None:
    blocks = _belief()
    rendered = render_belief(blocks)
    assert list(rendered) == list(STORED_NAMES[Part.BELIEF])
    assert [(block.name, block.family) for block in blocks] == [("posterior", "normal"), ("noise", "normal")]
    document, parquet = json.loads(rendered["json"]), _read_parquet(rendered["parquet"])
    with np.load(io.BytesIO(rendered["npz"]), allow_pickle=False) as archive:
        assert list(archive["blocks"]) == ["posterior", "noise"]
        assert list(archive["families"]) == ["normal", "normal"]
        for block, stated in zip(blocks, document["blocks"], strict=True):
            assert (stated["name"], stated["family"]) == (block.name, block.family)
            assert list(stated["arrays"]) == list(block.arrays) == ["names", "mean", "covariance"]
            for name, array in block.arrays.items():
                np.testing.assert_array_equal(np.array(stated["arrays"][name]), array)
                np.testing.assert_array_equal(archive[f"{block.name}.{name}"], array)
                np.testing.assert_array_equal(parquet[block.name, name], array)


def test_noise_has_mean_zero_and_the_covariance_of_the_doubt() -> None:
    (noise,) = _belief(posterior=None)
    assert noise.name == "noise"
    assert tuple(noise.arrays["names"]) == NAMES
    np.testing.assert_array_equal(noise.arrays["mean"], np.zeros(3))
    np.testing.assert_array_equal(noise.arrays["covariance"], COVARIANCE)


def test_a_posterior_without_correlations_has_a_variance() -> None:
    posterior, _ = _belief(posterior=Posterior(NAMES, np.zeros(3), np.array([1.0, 2.0, 3.0])))
    assert list(posterior.arrays) == ["names", "mean", "variance"]


def test_a_release_without_posterior_and_doubt_has_no_belief() -> None:
    assert render_belief(_belief(posterior=None, doubt=None)) == {}


def test_rendering_is_deterministic() -> None:
    """W3: the bytes depend on no clock, host or path."""
    assert render_belief(_belief(doubt=np.asfortranarray(COVARIANCE))) == render_belief(_belief())


@pytest.mark.parametrize(
    "changes",
    [
        {"doubt": np.full((3, 3), np.nan)},
        {"doubt": np.eye(2)},
        {"doubt": np.ones(3)[:2]},
        {"posterior": Posterior(NAMES, np.array([0.0, np.inf, 0.0]), np.eye(3))},
        {"posterior": Posterior(NAMES, np.zeros(2), np.eye(3))},
    ],
)
def test_a_belief_that_breaks_a_rule_is_not_rendered(changes: dict[str, Any]) -> None:
    with pytest.raises(Internal):
        render_belief(_belief(**changes))
