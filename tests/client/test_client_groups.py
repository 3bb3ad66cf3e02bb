"""Weights of groups, from the upload of a table to verified weights; and their arithmetic."""

import io
import warnings
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from corevault import (
    Client,
    Gaussian,
    Groups,
    InvalidArgument,
    LogisticRegression,
    NotFound,
    Release,
    Schema,
    UnexpectedReply,
    UntrustedRelease,
    WrongType,
    binary,
    categorical,
    integer,
)
from corevault.groups import read_groups
from scipy.optimize import nnls

from app.inference.core.release import CALIBRATED, GroupWeights
from app.inference.methods.dp_groups.weighing import weigh_groups
from app.releases.http.belief_rendering import render_belief
from tests.client.worlds import open_client

ROWS, NOISE = 1500, 0.5
SCHEMA = Schema(integer("age", 0, 100), categorical("site", ["north", "south", "east"]), binary("sex"), binary("sick"))
MODEL = LogisticRegression(features=["age"], target="sick")


@pytest.fixture(scope="module")
def client(migrated_file: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    with open_client(migrated_file, tmp_path_factory.mktemp("groups")) as opened:
        rng = np.random.default_rng(5)
        age = rng.integers(0, 101, ROWS)
        table: dict[str, Any] = {
            "age": age,
            "site": np.array(["north", "south", "east"])[rng.integers(0, 3, ROWS)],
            "sex": rng.integers(0, 2, ROWS),
            "sick": (rng.random(ROWS) < 1 / (1 + np.exp(-(age - 50) / 15))).astype(int),
        }
        with pytest.warns(UserWarning, match="guarantees little"):
            dataset = opened.datasets.create("clinics", SCHEMA, slots=ROWS, epsilon=19.0, delta=1e-6)
        opened.datasets.upload(dataset, table)
        yield opened


@pytest.fixture(scope="module")
def release(client: Client) -> Release:
    """A posterior is bought, and then the groups at this posterior."""
    bought = client.jobs.wait(client.jobs.submit("clinics", MODEL, size=8, epsilon=4.0))
    assert bought.release_id is not None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UntrustedRelease)
        belief = client.releases.download(bought.release_id).posterior().to_belief()
    parameters = {"groups": ["site", "sex"], "belief": belief}
    job = client.jobs.wait(
        client.jobs.submit("clinics", MODEL, method="dp-groups", size=2, epsilon=4.0, parameters=parameters)
    )
    assert job.release_id is not None
    return client.releases.get(job.release_id)


def make_groups(answers: np.ndarray, size: int = 2) -> tuple[Groups, np.ndarray]:
    """Render weights as the server does, and read them as the client does; also the server's weights."""
    found = weigh_groups(answers, NOISE, size)
    labels = tuple((f"s{index}",) for index in range(len(answers)))
    draws = np.zeros((answers.shape[1], 2))
    weights = GroupWeights(
        ("site",),
        labels,
        found.weight,
        found.strength,
        found.agreement,
        found.above_noise,
        NOISE,
        ("a", "b"),
        draws,
        answers,
        (),
        CALIBRATED,
    )
    return read_groups(render_belief((weights.make_block(),))["npz"]), found.weight


@pytest.mark.sqlite
@pytest.mark.slow
def test_groups_are_bought_at_an_earlier_posterior(client: Client, release: Release) -> None:
    groups = client.releases.groups(release)
    assert (groups.columns, groups.parameters) == (("site", "sex"), ("age", "intercept"))
    assert groups.labels[3] == ("south", "true")
    assert groups.answers.shape == (6, 100)
    assert np.count_nonzero(groups.weight) <= 2  # noise often hides all groups near a posterior
    assert np.all(groups.weight >= 0)
    assert release.size == 0
    table = groups.table()
    assert list(table.columns) == ["site", "sex", "weight", "strength", "agreement", "above_noise"]
    assert len(table) == 6
    statement = client.releases.verify(release)
    assert set(statement["digests"]) == {"groups.json", "groups.npz", "groups.parquet"}


@pytest.mark.sqlite
@pytest.mark.slow
def test_points_of_such_a_release_are_refused_in_words(client: Client, release: Release) -> None:
    with pytest.raises(InvalidArgument, match=r"client\.releases\.groups"):
        client.releases.download(release)
    with pytest.raises(InvalidArgument, match=f"Release {release.id} has"):
        client.releases.download(release.id)
    with pytest.raises(NotFound):
        client.releases.belief(release)


@pytest.mark.sqlite
@pytest.mark.slow
def test_groups_are_saved_as_they_are_certified(client: Client, release: Release, tmp_path: Path) -> None:
    with pytest.warns(UntrustedRelease):
        client.releases.save(release, tmp_path / "groups.npz")
    assert read_groups((tmp_path / "groups.npz").read_bytes()).labels == client.releases.groups(release).labels
    with pytest.raises(InvalidArgument, match=r"no points\. Save it as \.json, \.npz, \.parquet"):
        client.releases.save(release, tmp_path / "groups.csv")
    assert not (tmp_path / "groups.csv").exists()


def test_another_size_is_computed_without_the_server() -> None:
    """Client and server have the same weights for every size, by different code."""
    rng = np.random.default_rng(1)
    answers = 3 * rng.standard_normal((7, 4)) @ rng.standard_normal((4, 30)) + NOISE * rng.standard_normal((7, 30))
    for size in (1, 2, 4, 7):
        groups, expected = make_groups(answers, size)
        np.testing.assert_allclose(groups.weight, expected)
        np.testing.assert_allclose(make_groups(answers)[0].choose(size).weight, expected, atol=2e-3)


@pytest.mark.long
def test_w16_stated_errors_are_those_of_repeated_noise() -> None:
    """The figures of 400 noised answers to the same sums; the mean of stated variances is within a factor of two."""
    rng = np.random.default_rng(2)
    sizes = np.array([40.0, 30, 20, 10, 0])[:, None]
    exact = sizes * (rng.standard_normal((5, 6)) + 1) @ rng.standard_normal((6, 40)) / 10
    exact -= exact.mean(axis=1, keepdims=True)
    chosen = np.arange(5) < 2
    found, stated = [], []
    for repeat in range(400):
        groups, _ = make_groups(exact + NOISE * rng.standard_normal(exact.shape), 5)
        assert groups.above_noise.tolist() == [True, True, True, True, False]
        groups = replace(groups, weight=chosen.astype(np.float64))
        weight = np.full(5, np.nan)
        vectors, _ = groups._factorise()
        weight[chosen] = nnls(vectors[chosen].T, vectors.sum(axis=0))[0]
        found.append([weight, groups.strength, np.where(groups.above_noise, groups.agreement, np.nan)])
        if repeat % 20 == 0:
            stated.append(groups.errors(rng, 50))
    variance = np.square(stated).mean(axis=0) / np.var(found, axis=0)
    is_stated = np.isfinite(variance)
    assert is_stated.tolist() == [chosen.tolist(), [True] * 5, groups.above_noise.tolist()]
    assert np.all((variance[is_stated] > 0.5) & (variance[is_stated] < 2)), variance


def test_groups_without_weights_have_errors() -> None:
    """Noise alone: no weight has an error, and no figure is above noise."""
    groups, _ = make_groups(NOISE * np.random.default_rng(0).standard_normal((3, 9)))
    errors = groups.errors(np.random.default_rng(1), 5)
    assert np.isnan(errors.weight).all()
    assert np.isnan(errors.agreement).all()
    assert np.all(errors.strength >= 0)
    with pytest.raises(WrongType, match="generator"):
        groups.errors(1)  # type: ignore[arg-type]


@pytest.mark.parametrize("size", ["2", True, 1.5])
def test_a_size_must_be_a_whole_number(size: Any) -> None:
    groups, _ = make_groups(np.random.default_rng(0).standard_normal((3, 5)))
    with pytest.raises(WrongType):
        groups.choose(size)


def test_a_belief_is_in_the_designs_units() -> None:
    belief = Gaussian(("a", "b"), np.array([1.0, 2.0]), np.array([[2.0, 0.5], [0.5, 1.0]]))
    stated = {"parameters": ["a", "b"], "mean": [1.0, 2.0], "covariance": [[2.0, 0.5], [0.5, 1.0]]}
    assert belief.to_belief() == stated
    with pytest.raises(InvalidArgument, match="design"):
        Gaussian(("a",), np.zeros(1), np.eye(1), units="original").to_belief()


@pytest.mark.parametrize("fault", ["missing", "shape", "family", "no archive"])
def test_other_bytes_are_refused(fault: str) -> None:
    groups, _ = make_groups(np.random.default_rng(0).standard_normal((3, 5)))
    arrays: dict[str, Any] = {
        "blocks": np.array(["groups"]),
        "families": np.array(["group-weights" if fault != "family" else "dirichlet"]),
        "groups.values": np.array(groups.columns),
        "groups.labels": np.array(groups.labels),
        "groups.parameters": np.array(groups.parameters),
        "groups.noise": np.array([NOISE]),
    }
    arrays |= {f"groups.{name}": getattr(groups, name) for name in ("weight", "strength", "agreement", "draws")}
    arrays |= {"groups.above_noise": groups.above_noise * 1.0, "groups.answers": groups.answers}
    if fault == "missing":
        del arrays["groups.noise"]
    if fault == "shape":
        arrays["groups.answers"] = groups.answers[:, 1:]
    file = io.BytesIO()
    np.savez(file, **arrays)
    with pytest.raises(UnexpectedReply):
        read_groups(b"no" if fault == "no archive" else file.getvalue())


def test_a_column_with_the_name_of_a_figure_keeps_its_values() -> None:
    """W16: a table that showed the figure in place of the group's value would be wrong."""
    ones, above = np.ones(2), np.ones(2, dtype=np.bool_)
    columns, labels = ("weight", "group_weight", "above_noise"), (("light", "a", "b"), ("heavy", "c", "d"))
    table = Groups(columns, labels, ones, ones, ones, above, 1.0, ("age",), np.zeros((3, 1)), np.zeros((2, 3))).table()
    figures = ["group_group_weight", "strength", "agreement", "group_above_noise"]
    assert list(table.columns) == [*columns, *figures]
    assert list(table["weight"]) == ["light", "heavy"]
    assert list(table["group_above_noise"]) == [True, True]
