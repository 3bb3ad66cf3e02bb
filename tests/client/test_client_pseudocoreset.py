"""The downloaded points: shapes, DataFrames, posteriors, and new rows in the design's coordinates."""

import io
import subprocess
import sys
from collections.abc import Mapping

import numpy as np
import pandas as pd
import pytest
import rfc8785
from corevault import (
    DesignColumn,
    Pseudocoreset,
    Release,
    UnexpectedReply,
    UntrustedRelease,
    design_matrix,
    logistic_laplace,
)
from corevault._digest import digest_bytes
from corevault.pseudocoreset import from_npz

from tests.client.fake import DESIGN, Published, Script

COLUMNS = tuple(DesignColumn.from_json(column) for column in DESIGN)


def _downloaded(published: Published) -> Pseudocoreset:
    with Script([published]).client(api_key=None) as client:
        return client.releases.download("rel_1")


def test_a_download_has_the_published_numbers() -> None:
    published = Published()
    core = _downloaded(published)
    np.testing.assert_array_equal(core.u, published.u)
    np.testing.assert_array_equal(core.weight, published.weight)
    assert core.y is not None
    np.testing.assert_array_equal(core.y, published.y)
    assert core.columns == ("age", "sex=Male", "intercept")


@pytest.mark.parametrize(("diagnostics", "trusted"), [({"trusted": True}, True), ({"trusted": "no"}, None), ({}, None)])
def test_trusted_is_read_from_the_diagnostics(diagnostics: dict[str, object], trusted: bool | None) -> None:
    published = Published()
    published.release["diagnostics"] = diagnostics
    assert _downloaded(published).release.trusted is trusted


def test_download_of_an_untrusted_release_warns() -> None:
    published = Published()
    published.release["diagnostics"] = {"trusted": False}
    with pytest.warns(UntrustedRelease, match="should not be used as a posterior"):
        assert _downloaded(published).release.trusted is False


def test_to_pandas_has_the_columns_of_the_contract() -> None:
    frame = _downloaded(Published()).to_pandas()
    assert list(frame.columns) == ["age", "sex=Male", "intercept", "y", "weight"]
    assert len(frame) == 4


@pytest.mark.parametrize("spread", [{"covariance": [[4.0, 1.0], [1.0, 9.0]]}, {"variance": [4, 9.0]}])
def test_a_stated_posterior_is_returned_as_a_gaussian(spread: dict[str, object]) -> None:
    published = Published()
    published.release["posterior"] = {"parameters": ["age", "intercept"], "mean": [1.5, -2.0], **spread}
    published.statement["posterior_digest"] = digest_bytes(rfc8785.dumps(published.release["posterior"]))
    stated = _downloaded(published).stated_posterior()
    assert stated is not None
    assert stated.names == ("age", "intercept")
    np.testing.assert_array_equal(stated.mean, [1.5, -2.0])
    np.testing.assert_array_equal(stated.sd, [2.0, 3.0])
    assert stated.covariance[0, 1] == (1.0 if "covariance" in spread else 0.0)
    assert _downloaded(Published()).stated_posterior() is None


def test_laplace_is_the_weighted_posterior_under_the_releases_prior() -> None:
    published = Published()
    belief = _downloaded(published).laplace()
    again = logistic_laplace(published.u, published.y, published.weight, prior_scale=2.0)
    np.testing.assert_array_equal(belief.mean, again.mean)
    assert belief.names == ("age", "sex=Male", "intercept")


def test_laplace_of_an_unknown_family_is_refused() -> None:
    published = Published()
    published.release["model"]["family"] = "neural-linear"
    core = from_npz(Release.from_json(published.release), published.bodies["npz"])
    with pytest.raises(ValueError, match="neural-linear"):
        core.laplace()


def test_points_that_do_not_fit_their_metadata_are_refused() -> None:
    published = Published()
    release = Release.from_json(published.release)
    scalar = io.BytesIO()
    np.savez(scalar, u=np.float64(1), weight=np.ones(4), columns=np.array(["age"]))
    pickled = io.BytesIO()
    np.savez(pickled, u=np.array([{}], dtype=object), weight=np.ones(4), columns=np.array(["age"]))
    for content in (b"", b"nonsense", scalar.getvalue(), pickled.getvalue(), published.npz(("age", "b", "intercept"))):
        with pytest.raises(UnexpectedReply):
            from_npz(release, content)
    smaller = Release.from_json(published.release | {"size": 3})
    with pytest.raises(UnexpectedReply, match="size"):
        from_npz(smaller, published.bodies["npz"])


@pytest.mark.parametrize("kind", ["frame", "mapping"])
def test_new_rows_are_mapped_by_bounds_and_categories(kind: str) -> None:
    values: Mapping[str, list[object]] = {"sex": ["Male", "Female", "Male"], "age": [0, 10, 7.5]}
    table = pd.DataFrame(values) if kind == "frame" else {name: np.array(value) for name, value in values.items()}
    expected = np.array([[-1, 1, 1], [1, 0, 1], [0.5, 1, 1]])
    np.testing.assert_allclose(design_matrix(COLUMNS, table), expected)


def test_values_out_of_bounds_are_clamped() -> None:
    table = pd.DataFrame({"age": [-5.0, 50.0], "sex": ["Male"] * 2})
    np.testing.assert_allclose(design_matrix(COLUMNS, table)[:, 0], [-1, 1])


def test_booleans_and_numbers_are_read_as_their_csv() -> None:
    design = [
        DesignColumn(name="b", source="b", transform={"kind": "affine", "type": "binary", "center": 0.5, "scale": 0.5}),
        DesignColumn(name="code=2", source="code", transform={"kind": "indicator", "value": "2", "reference": "1"}),
    ]
    table = pd.DataFrame({"b": [True, False], "code": [2, 1]})
    np.testing.assert_allclose(design_matrix(design, table), [[1, 1], [-1, 0]])


@pytest.mark.parametrize("table", [{"age": [np.nan], "sex": ["Male"]}, {"age": [1.0], "sex": [None]}])
def test_missing_values_are_refused(table: dict[str, list[object]]) -> None:
    with pytest.raises(ValueError, match="missing values"):
        design_matrix(COLUMNS, pd.DataFrame(table))


def test_a_table_without_a_column_of_the_design_is_refused() -> None:
    with pytest.raises(KeyError):
        design_matrix(COLUMNS, pd.DataFrame({"age": [1.0]}))


@pytest.mark.parametrize("transform", [{"kind": "spline"}, {}])
def test_an_unknown_transform_is_refused(transform: dict[str, str]) -> None:
    column = DesignColumn(name="age", source="age", transform=transform)
    with pytest.raises(ValueError, match="cannot compute"):
        design_matrix([column], {"age": np.ones(2)})


def test_a_design_of_constants_is_refused() -> None:
    with pytest.raises(ValueError, match="counted"):
        design_matrix(COLUMNS[2:], {"age": np.ones(2)})


def test_importing_the_client_does_not_import_pandas() -> None:
    program = "import corevault, sys; sys.exit('pandas' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0
