"""Common mistakes: each raises an error of the SDK with a remedy, and nothing is sent."""

import datetime as dt
import decimal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pandas as pd
import pytest
from corevault import (
    Client,
    ClientClosed,
    CorevaultError,
    Gaussian,
    InvalidArgument,
    LogisticRegression,
    Mechanism,
    MissingDependency,
    NotConverged,
    NotFound,
    Schema,
    TooManyNullRows,
    UnexpectedReply,
    WrongType,
    binary,
    categorical,
    integer,
    logistic_laplace,
    posterior,
    real,
)
from corevault.errors import ApiError, MissingColumn, UnreadableSource

from tests.client.fake import Published, Script, ok, problem

MODEL = LogisticRegression(features=["age"], target="seen")
URL = "http://vault.test"
BELIEF = Gaussian(("a", "b"), np.zeros(2), np.eye(2))
RELEASE = Published().parts()[0]
RNG = np.random.default_rng(0)
X = np.ones((2, 1))
Y = np.array([0.0, 1.0])
anything: Any = None


def _models(**changes: Any) -> object:
    return LogisticRegression(**{"features": ["age"], "target": "seen"} | changes).to_json()


WITHOUT_CLIENT: dict[str, tuple[Callable[[], object], type[CorevaultError], str]] = {
    "no address": (lambda: Client(anything), WrongType, "base_url must be text"),
    "an address without a scheme": (lambda: Client("localhost:8000"), InvalidArgument, "start with http"),
    "an address without a host": (lambda: Client("http://"), InvalidArgument, "must name a server"),
    "an address with a space": (lambda: Client("http://a b"), InvalidArgument, "must name a server"),
    "an address with a query": (lambda: Client(f"{URL}?key=1"), InvalidArgument, "have no query"),
    "a port that is none": (lambda: Client("http://a:99999999"), InvalidArgument, "must name a server"),
    "a host that is none": (lambda: Client("http://☃..ÿ"), InvalidArgument, "must be the address of a server"),
    "the path of a key": (lambda: Client(URL, Path("admin.key")), WrongType, "content of a key file"),  # type: ignore[arg-type]
    "a key in bytes": (lambda: Client(URL, b"cv_1"), WrongType, "api_key must be text"),  # type: ignore[arg-type]
    "two keys": (lambda: Client(URL, "cv_1 cv_2"), InvalidArgument, "pass the key alone"),
    "a timeout in text": (lambda: Client(URL, timeout="30"), WrongType, "timeout must be a number"),  # type: ignore[arg-type]
    "a negative timeout": (lambda: Client(URL, timeout=-1), InvalidArgument, "timeout must be at least 0"),
    "retries in text": (lambda: Client(URL, max_retries="2"), WrongType, "max_retries must be a whole"),  # type: ignore[arg-type]
    "half a retry": (lambda: Client(URL, max_retries=2.5), WrongType, "max_retries must be a whole"),  # type: ignore[arg-type]
    "features in a set": (lambda: _models(features={"age"}), WrongType, "in a fixed order; got a value of type set"),
    "features that run out": (lambda: _models(features=iter(["age"])), WrongType, "in a fixed order"),
    "features in an index": (lambda: _models(features=pd.Index(["age"])), WrongType, "in a fixed order"),
    "no features": (lambda: _models(features=None), WrongType, "got None"),
    "scales in a list": (lambda: _models(prior_scales=[1.0]), WrongType, "prior_scales must be a mapping"),
    "bounds in text": (lambda: real("a", "0", "1"), WrongType, "lower must be a number"),  # type: ignore[arg-type]
    "bounds of dates": (lambda: real("a", dt.date.min, dt.date.max), WrongType, "lower must be a number"),  # type: ignore[arg-type]
    "bounds of truths": (lambda: integer("a", False, True), WrongType, "lower must be a number"),  # noqa: FBT003
    "no bound": (lambda: real("a", 0, anything), WrongType, "upper must be a number; got None"),
    "bounds swapped": (lambda: real("a", 1, 0), InvalidArgument, "lower must be below upper"),
    "a bound that is no number": (lambda: real("a", float("nan"), 1), InvalidArgument, "lower must be below upper"),
    "categories in text": (lambda: categorical("a", "FM"), WrongType, "a list of texts"),
    "categories in a set": (lambda: categorical("a", {"F", "M"}), WrongType, "in a fixed order"),  # type: ignore[arg-type]
    "categories of numbers": (lambda: categorical("a", [1, 2]), WrongType, "such as '1' for the number 1"),  # type: ignore[list-item]
    "a category twice": (lambda: categorical("a", ["F", "F"]), InvalidArgument, "declared twice; remove"),
    "no categories": (lambda: categorical("a", []), InvalidArgument, "at least one category"),
    "an unknown impute category": (lambda: categorical("a", ["F"], impute="X"), InvalidArgument, "one of the cat"),
    "a word for a number": (lambda: real("a", 0, 1, impute="mean"), WrongType, "impute must be a number"),  # type: ignore[arg-type]
    "an impute value outside": (lambda: real("a", 0, 1, impute=5), InvalidArgument, "within the bounds"),
    "a word for a truth": (lambda: binary("a", impute="yes"), InvalidArgument, "True or False"),  # type: ignore[arg-type]
    "a list for a truth": (lambda: binary("a", impute=[1]), InvalidArgument, "True or False"),  # type: ignore[arg-type]
    "a number for a name": (lambda: real(3, 0, 1), WrongType, "name must be text"),  # type: ignore[arg-type]
    "columns in a list": (lambda: Schema([binary("a")]), WrongType, "one by one"),  # type: ignore[arg-type]
    "a column twice": (lambda: Schema(binary("a"), binary("a")), InvalidArgument, "declared twice"),
    "half a draw": (lambda: BELIEF.sample(2.5, RNG), WrongType, "n must be a whole number"),  # type: ignore[arg-type]
    "fewer than no draws": (lambda: BELIEF.sample(-1, RNG), InvalidArgument, "n must be at least 0"),
    "a seed for a generator": (lambda: BELIEF.sample(3, 0), WrongType, "default_rng"),  # type: ignore[arg-type]
    "another thing's distance": (lambda: BELIEF.kl(anything), WrongType, "must be a Gaussian"),
    "a scale in text": (lambda: Gaussian.prior(["a"], "1"), WrongType, "scale must be a number"),  # type: ignore[arg-type]
    "a table for a matrix": (
        lambda: logistic_laplace(pd.DataFrame({"sex": ["F", "M"]}), Y),
        WrongType,
        "make a design matrix first",
    ),
    "a prior in text": (lambda: logistic_laplace(X, Y, prior_scale="1"), WrongType, "prior_scale must be"),  # type: ignore[arg-type]
    "an infinite prior": (lambda: logistic_laplace(X, Y, prior_scale=np.inf), InvalidArgument, "finite"),
    "too many names": (lambda: logistic_laplace(X, Y, names=["a", "b"]), InvalidArgument, "one name for each"),
    "a design out of scale": (lambda: logistic_laplace(1e300 * X, Y), NotConverged, "out of scale"),
    "no release": (lambda: posterior(anything, X, Y), WrongType, "such as core.release"),
    "labels that are no truths": (
        lambda: posterior(RELEASE, np.ones((2, 3)), np.array([1.0, 2.0])),
        InvalidArgument,
        "y must be 0 or 1",
    ),
}


@pytest.mark.parametrize("name", WITHOUT_CLIENT)
def test_a_mistake_raises_an_error_of_the_sdk(name: str) -> None:
    call, kind, sentence = WITHOUT_CLIENT[name]
    with pytest.raises(kind, match=sentence):
        call()


WITH_CLIENT: dict[str, tuple[Callable[[Client], object], type[CorevaultError], str]] = {
    "no id": (lambda c: c.datasets.get(anything), WrongType, "class Dataset; got None"),
    "a number for an id": (lambda c: c.jobs.get(3), WrongType, "class Job; got a value of type int"),  # type: ignore[arg-type]
    "an empty id": (lambda c: c.datasets.get(""), InvalidArgument, "An id must be given"),
    "half a character": (lambda c: c.datasets.get("ds\ud800"), InvalidArgument, "UTF-8"),
    "half a character in a body": (lambda c: c.datasets.update("d", description="\ud800"), InvalidArgument, "UTF-8"),
    "no reason": (lambda c: c.datasets.unfreeze("d", reason=anything), WrongType, "reason must be text"),
    "no list of keys": (lambda c: c.datasets.update("d", shared_with=3), WrongType, "list of ids"),  # type: ignore[arg-type]
    "a decimal": (lambda c: c.quote("d", MODEL, size=9, epsilon=decimal.Decimal(1)), WrongType, "must be text"),  # type: ignore[arg-type]
    "a date": (lambda c: c.quote("d", MODEL, size=9, epsilon=dt.date.min), WrongType, "privacy.epsilon must be"),  # type: ignore[arg-type]
    "a target and a mechanism": (
        lambda c: c.quote(
            "d", MODEL, size=9, epsilon=1.0, mechanism=Mechanism(noise_multiplier=1, sampling_rate=1, iterations=1)
        ),
        InvalidArgument,
        "not both",
    ),
    "numbered parameters": (
        lambda c: c.quote("d", MODEL, size=9, parameters={1: 2}),  # type: ignore[dict-item]
        WrongType,
        "names in parameters must be text",
    ),
    "a number for a key": (
        lambda c: c.jobs.submit("d", MODEL, size=9, epsilon=1.0, idempotency_key=3),  # type: ignore[arg-type]
        WrongType,
        "idempotency_key must be text",
    ),
    "a date in text": (
        lambda c: c.keys.create("ana", "analyst", expires_at="2030-01-01"),  # type: ignore[arg-type]
        WrongType,
        "datetime with a time zone",
    ),
    "a limit in a list": (lambda c: c.datasets.list(limit=[1]), WrongType, "limit must be text or a whole"),  # type: ignore[arg-type]
    "a wait in text": (lambda c: c.datasets.wait_until_ready("d", timeout_seconds="9"), WrongType, "timeout_seconds"),  # type: ignore[arg-type]
    "a wait for a job in text": (lambda c: c.jobs.wait("j", timeout_seconds="9"), WrongType, "timeout_seconds"),  # type: ignore[arg-type]
    "a negative pause": (lambda c: c.jobs.wait("j", poll_seconds=-1), InvalidArgument, "poll_seconds must be at least"),
    "one format": (lambda c: c.releases.verify("r", formats="npz"), WrongType, "formats must be a list"),
    "no formats": (lambda c: c.releases.verify("r", formats=anything), WrongType, "formats must be a list"),
    "an unknown format": (lambda c: c.releases.points("r", "xlsx"), InvalidArgument, "format must be one of"),
    "an upload of nothing": (lambda c: c.datasets.upload("d", None), WrongType, "Pass a path, bytes"),
    "no upload": (lambda c: c.datasets.resume("d", anything, b"a"), WrongType, "class OpenUpload"),
}


@pytest.mark.parametrize("name", WITH_CLIENT)
def test_a_mistake_sends_nothing(name: str) -> None:
    call, kind, sentence = WITH_CLIENT[name]
    script = Script([ok({})])
    with script.client() as client, pytest.raises(kind, match=sentence):
        call(client)
    assert not script.seen


@pytest.mark.parametrize("ending", ["", "/", "/v1", "/v1/", " "])
def test_an_address_may_end_in_the_version(ending: str) -> None:
    script = Script([ok({"id": "key_1", "name": "ana", "role": "analyst"})])
    with Client(f"{URL}/proxy{ending}", "cv_1", transport=httpx.MockTransport(script)) as client:
        client.me()
    assert str(script.seen[0].url) == f"{URL}/proxy/v1/me"


def test_a_closed_client_is_refused() -> None:
    script = Script([ok({})])
    client = script.client()
    client.close()
    for call in (client.me, lambda: next(client.jobs.events("job_1")), lambda: client.datasets.upload("d", b"a\n1\n")):
        with pytest.raises(ClientClosed, match="make a new one"):
            call()
    assert not script.seen


def test_resuming_an_upload_that_is_not_open_is_explained() -> None:
    script = Script([httpx.Response(404)])  # as the answer to a HEAD, which has no body
    with script.client() as client, pytest.raises(NotFound, match=r"datasets\.open_uploads lists"):
        client.datasets.resume("ds_1", "up_1", b"age\n1\n")
    refused = Script([httpx.Response(403)])
    with refused.client() as client, pytest.raises(ApiError, match="status 403"):
        client.datasets.resume("ds_1", "up_1", b"age\n1\n")


def test_an_answer_of_another_server_mentions_base_url() -> None:
    with (
        Script([httpx.Response(200, text="<html>")]).client() as client,
        pytest.raises(UnexpectedReply, match="base_url"),
    ):
        client.me()


def test_a_fault_found_by_the_server_names_its_pointer() -> None:
    fault = problem(422, "invalid_request", errors=[{"pointer": "/size", "message": "Use an integer."}])
    with Script([fault]).client() as client, pytest.raises(CorevaultError, match="/size: Use an integer"):
        client.quote("ds_1", MODEL, size=20.0, epsilon=0.5)  # type: ignore[arg-type]


@pytest.mark.parametrize("package", ["pandas", "pyarrow"])
def test_a_missing_extra_is_named(package: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, package, None)
    calls: dict[str, Callable[[], object]] = {
        "pandas": BELIEF.to_pandas,
        "pyarrow": lambda: Schema(binary("a")).check(b"PAR1 and so on"),
    }
    with pytest.raises(MissingDependency, match=r"pip install 'corevault\[") as caught:
        calls[package]()
    assert isinstance(caught.value, ImportError)


@pytest.mark.parametrize(
    ("kind", "also"),
    [
        (InvalidArgument, ValueError),
        (WrongType, TypeError),
        (MissingColumn, KeyError),
        (UnreadableSource, OSError),
        (TooManyNullRows, ValueError),
        (NotConverged, ArithmeticError),
        (MissingDependency, ImportError),
        (ClientClosed, RuntimeError),
    ],
)
def test_each_error_is_in_the_tree_and_of_a_builtin_class(kind: type[CorevaultError], also: type[Exception]) -> None:
    assert issubclass(kind, CorevaultError)
    assert issubclass(kind, also)
    if kind is not TooManyNullRows:
        assert str(kind("A sentence.")) == kind("A sentence.").detail == "A sentence."
