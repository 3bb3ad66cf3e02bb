"""Methods accept an id or a reply object. Anything else sends no request."""

from collections.abc import Callable
from contextlib import suppress
from typing import Any, cast

import pytest
from corevault import ApiKey, Client, Dataset, InvalidArgument, Job, LogisticRegression, Release, Schema, real

from tests.client.fake import DATASET, Script, job, ok

MODEL = LogisticRegression(features=("age",), target="rich")
OF_DATASET = Dataset.from_json(DATASET)
OF_JOB = Job.from_json(job("running"))
OF_KEY = ApiKey(id="key_1", name="a", role="analyst")
OF_RELEASE = object.__new__(Release)
object.__setattr__(OF_RELEASE, "id", "rel_1")
CALLS: dict[str, tuple[Any, str, Callable[[Client, Any], object]]] = {
    "datasets.get": (OF_DATASET, "ds_1", lambda client, it: client.datasets.get(it)),
    "datasets.update": (OF_DATASET, "ds_1", lambda client, it: client.datasets.update(it, description="new")),
    "datasets.delete": (OF_DATASET, "ds_1", lambda client, it: client.datasets.delete(it)),
    "datasets.upload": (OF_DATASET, "ds_1", lambda client, it: client.datasets.upload(it, b"age\n1\n")),
    "datasets.wait": (OF_DATASET, "ds_1", lambda client, it: client.datasets.wait_until_ready(it)),
    "datasets.set_budget": (OF_DATASET, "ds_1", lambda client, it: client.datasets.set_budget(it, epsilon=1.0)),
    "datasets.budget": (OF_DATASET, "ds_1", lambda client, it: client.datasets.budget(it)),
    "datasets.unfreeze": (OF_DATASET, "ds_1", lambda client, it: client.datasets.unfreeze(it, reason="mended")),
    "datasets.ledger": (OF_DATASET, "ds_1", lambda client, it: client.datasets.ledger(it)),
    "jobs.list": (OF_DATASET, "ds_1", lambda client, it: client.jobs.list(dataset_id=it)),
    "jobs.submit": (OF_DATASET, "ds_1", lambda client, it: client.jobs.submit(it, MODEL, size=3, epsilon=0.5)),
    "quote": (OF_DATASET, "ds_1", lambda client, it: client.quote(it, MODEL, size=3, epsilon=0.5)),
    "jobs.get": (OF_JOB, "job_1", lambda client, it: client.jobs.get(it)),
    "jobs.cancel": (OF_JOB, "job_1", lambda client, it: client.jobs.cancel(it)),
    "jobs.events": (OF_JOB, "job_1", lambda client, it: list(client.jobs.events(it))),
    "jobs.wait": (OF_JOB, "job_1", lambda client, it: client.jobs.wait(it)),
    "keys.rotate": (OF_KEY, "key_1", lambda client, it: client.keys.rotate(it)),
    "keys.revoke": (OF_KEY, "key_1", lambda client, it: client.keys.revoke(it)),
    "shared_with": (OF_KEY, "key_1", lambda client, it: client.datasets.update("ds_1", shared_with=[it])),
    "releases.list": (OF_DATASET, "ds_1", lambda client, it: client.releases.list(dataset_id=it)),
    "releases.get": (OF_RELEASE, "rel_1", lambda client, it: client.releases.get(it)),
    "releases.points": (OF_RELEASE, "rel_1", lambda client, it: client.releases.points(it)),
    "releases.certificate": (OF_RELEASE, "rel_1", lambda client, it: client.releases.certificate(it)),
}


def _send(call: Callable[[Client, Any], object], about: object) -> tuple[str, bytes]:
    """The address and the body of the first request. Most calls cannot decode the answer."""
    script = Script([ok({"unlike": "any reply"})])
    with script.client(max_retries=0) as client, suppress(Exception):
        call(client, about)
    assert script.seen, "nothing was sent"
    return str(script.seen[0].url), script.bodies[0]


@pytest.mark.parametrize("name", CALLS)
def test_a_reply_is_accepted_instead_of_its_id(name: str) -> None:
    reply, identifier, call = CALLS[name]
    assert _send(call, reply) == _send(call, identifier)
    address, body = _send(call, reply)
    assert identifier in address or identifier.encode() in body


@pytest.mark.parametrize("name", CALLS)
@pytest.mark.parametrize("other", [7, None, OF_KEY, OF_JOB], ids=["number", "nothing", "key", "job"])
def test_an_object_of_another_class_is_refused_by_name(name: str, other: object) -> None:
    reply, _, call = CALLS[name]
    if isinstance(other, type(reply)) or (other is None and name.endswith("list")):
        return
    script = Script([ok({})])
    with script.client() as client, pytest.raises(TypeError, match=type(reply).__name__):
        call(client, other)
    assert not script.seen


def test_a_single_key_as_a_list_is_refused() -> None:
    schema = Schema(real("age", 0, 10))
    for one in ("key_1", OF_KEY):
        with Script([ok({})]).client() as client, pytest.raises(TypeError, match="list"):
            client.datasets.create("visits", schema, slots=10, epsilon=1.0, shared_with=one)  # type: ignore[arg-type]


def test_a_key_object_as_the_secret_is_refused() -> None:
    with pytest.raises(TypeError, match="'key'"):
        Script([ok({})]).client(OF_KEY)  # type: ignore[arg-type]


def test_a_missing_release_id_refers_to_jobs_wait() -> None:
    script = Script([ok({})])
    with script.client() as client, pytest.raises(TypeError, match=r"jobs\.wait"):
        client.releases.download(cast("str", OF_JOB.release_id))
    assert not script.seen


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (
            lambda client: client.releases.download(f"job_{'0' * 26}"),
            "belongs to an object of the class Job; pass the id of a Release",
        ),
        (
            lambda client: client.jobs.get(f"rel_{'0' * 26}"),
            "belongs to an object of the class Release; pass the id of a Job",
        ),
        (
            lambda client: client.datasets.get(f"key_{'0' * 26}"),
            "belongs to an object of the class ApiKey; pass the id of a Dataset",
        ),
    ],
)
def test_the_id_of_another_kind_is_refused(call: Callable[[Client], object], words: str) -> None:
    script = Script([])
    with script.client() as client, pytest.raises(InvalidArgument, match=words):
        call(client)
    assert script.seen == []


def test_a_dataset_may_have_a_name_that_begins_as_an_id() -> None:
    script = Script([ok({"items": [DATASET | {"name": "job_counts"}], "next_cursor": None}), ok(DATASET)])
    with script.client() as client:
        assert client.datasets.get("job_counts").id == "ds_1"
