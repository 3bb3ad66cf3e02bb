"""``client.stream``: one release for each block of a series, bought once, and merged."""

from dataclasses import replace
from typing import Any

import pytest
from corevault import Client, InvalidArgument, LogisticRegression, Pseudocoreset, WrongType, example
from corevault._calls import Calls

from tests.client.fake import DATASET, Script, ok

MODEL = LogisticRegression(features=["age", "smoker", "sex"], target="ill")


def _block(number: int, **changes: Any) -> dict[str, Any]:
    owner = {"id": "key_1", "name": "An owner"}
    return DATASET | {"id": f"ds_{number}", "name": f"block {number}", "series": "visits", "owner": owner} | changes


def _client(*datasets: dict[str, Any]) -> Client:
    return Script([ok({"items": list(datasets), "next": None})]).client()


@pytest.fixture
def bought(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, str]]:
    """The dataset and the idempotency key of each release that is bought."""
    calls = list[tuple[str, str]]()

    async def buy(_: Calls, dataset: Any, *__: Any, idempotency_key: str, **___: Any) -> Pseudocoreset:
        calls.append((dataset.id, idempotency_key))
        core = example()
        return replace(core, release=replace(core.release, id=f"rel_{dataset.id}", dataset_id=dataset.id))

    monkeypatch.setattr(Calls, "buy", buy)
    return calls


def test_every_ready_block_is_bought_and_merged(bought: list[tuple[str, str]]) -> None:
    others = [
        _block(7, series="others"),
        _block(8, series=None),
        _block(9, status="received"),
        _block(6, status="deleted"),
    ]
    core = _client(_block(3), _block(1), *others, _block(2)).stream("visits", MODEL, 0.5, size=15)
    assert [dataset for dataset, _ in bought] == ["ds_1", "ds_2", "ds_3"]
    assert core.release.diagnostics is not None
    assert core.release.diagnostics["datasets"] == ["ds_1", "ds_2", "ds_3"]
    assert len(core.u) <= 15


def test_a_repeated_stream_has_the_same_keys(bought: list[tuple[str, str]]) -> None:
    """So the server returns the releases that were bought, and charges new blocks only."""
    _client(_block(1), _block(2)).stream("visits", MODEL, 0.5)
    _client(_block(1), _block(2), _block(3)).stream("visits", MODEL, 0.5)
    assert bought[2:4] == bought[:2]
    keys = {key for _, key in bought}
    assert len(keys) == 3
    assert all(1 <= len(key) <= 128 for key in keys)
    _client(_block(1), _block(2)).stream("visits", MODEL, 0.6)
    _client(_block(1), _block(2)).stream("visits", MODEL, 0.5, method="dp-vi")
    _client(_block(1), _block(2)).stream("visits", MODEL, 0.5, purchase="again")
    assert len({key for _, key in bought}) == 9


def test_one_block_gives_its_release(bought: list[tuple[str, str]]) -> None:
    assert _client(_block(1)).stream("visits", MODEL, 0.5).release.id == "rel_ds_1"
    assert len(bought) == 1


def test_a_name_of_two_owners_is_refused(bought: list[tuple[str, str]]) -> None:
    other = _block(2, owner={"id": "key_2", "name": "Another owner"})
    with pytest.raises(InvalidArgument, match=r"Several owners.*key_1.*key_2"):
        _client(_block(1), other).stream("visits", MODEL, 0.5)
    assert _client(_block(1), other).stream("visits", MODEL, 0.5, owner="key_2").release.dataset_id == "ds_2"
    assert [dataset for dataset, _ in bought] == ["ds_2"]


def test_impossible_streams_are_refused_before_anything_is_bought(bought: list[tuple[str, str]]) -> None:
    client, wrong = _client(_block(1), _block(2)), dict[str, Any](series=7)
    for arguments, error, words in (
        ({"series": "nothing"}, InvalidArgument, "No dataset of the series 'nothing' is ready"),
        (wrong, WrongType, "series must be text"),
        ({"epsilon": "much"}, WrongType, "epsilon must be a number"),
        ({"model": LogisticRegression}, WrongType, "model must be a model"),
        ({"size": 0}, InvalidArgument, "size must be at least 1"),
    ):
        given: dict[str, Any] = {"series": "visits", "model": MODEL, "epsilon": 0.5} | arguments
        with pytest.raises(error, match=words):
            client.stream(given.pop("series"), given.pop("model"), given.pop("epsilon"), **given)
    assert bought == []
