"""Every public object of the client has a docstring with an example that runs.

Examples use the names in :func:`world`: clients of the real application in this process, whose worker runs after each
request, a dataset, a model, and a job with its release.
"""

import asyncio
import doctest
import importlib
import inspect
import pkgutil
import shutil
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from io import StringIO
from pathlib import Path
from typing import Any, Final

import corevault
import httpx
import numpy as np
import pytest
from corevault import (
    AsyncClient,
    BeliefNetwork,
    Client,
    LogisticRegression,
    Schema,
    Topics,
    UntrustedRelease,
    binary,
    categorical,
    integer,
)
from corevault._io import run
from corevault._resumable import begin
from corevault._upload import add_digest, prepare
from matplotlib import pyplot as plt
from structlog.testing import capture_logs

from app.db import Database, make_engine
from app.main import create_app
from tests.factories import rows
from tests.factories.transport import AppTransport
from tests.factories.worker import House, make_house
from tools.guide.sdk import PAGES, RESOURCES

pytestmark = [pytest.mark.sqlite, pytest.mark.slow]
EXTRAS: Final = {"to_polars": "polars", "numpyro_model": "numpyro", "pymc_model": "pymc", "to_inference_data": "arviz"}
"""Methods whose examples need a package that is not among the locked ones."""
OPTIONS: Final = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
SCHEMA: Final = Schema(integer("age", 18, 95), categorical("sex", ["female", "male"]), binary("sick"))
SLOTS: Final = 2000


class Working(AppTransport):
    """Lets the worker empty its queue after each request, as if it were fast."""

    def __init__(self, house: House) -> None:
        super().__init__(create_app(house.services, metrics=False))
        self._house = house

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        response = super().handle_request(request)
        self._house.work()
        return response


@dataclass(frozen=True)
class Example:
    """The docstring of one public object."""

    name: str
    text: str
    home: str

    def __str__(self) -> str:
        return self.name


def list_objects() -> dict[str, object]:
    """Every public class, function and method, once each, by its name."""
    named = [name for _, names in PAGES.values() for name in names.split() if "." in name]
    calls = [f"resources.{page}.{kind}" for page, kind in RESOURCES.items()]
    found = dict[str, object]()
    seen = set[int]()
    for name in (*corevault.__all__, *named, *calls):
        home, _, last = f"corevault.{name}".rpartition(".")
        for place, each in _list_members(name, getattr(importlib.import_module(home), last)):
            if id(inspect.unwrap(each)) not in seen:  # type: ignore[arg-type]  # a class or a function
                seen.add(id(inspect.unwrap(each)))  # type: ignore[arg-type]
                found[place] = each
    return found


def _list_members(name: str, item: object) -> Iterator[tuple[str, object]]:
    yield name, item
    for member, value in inspect.getmembers(item) if inspect.isclass(item) else ():
        each = value.fget if isinstance(value, property) else getattr(value, "__func__", value)
        if not member.startswith("_") and inspect.isfunction(each) and each.__module__.startswith("corevault"):
            yield f"{name}.{member}", each


def list_examples() -> Iterator[Example]:
    """The docstrings of all public objects, and all others that have examples."""
    public = list_objects()
    for name, each in public.items():
        yield Example(name, inspect.cleandoc(each.__doc__ or ""), str(getattr(each, "__module__", "corevault")))
    seen = {each.__doc__ for each in public.values()}
    for module in pkgutil.walk_packages(corevault.__path__, "corevault."):
        if not module.name.endswith("__main__"):
            for found in doctest.DocTestFinder().find(importlib.import_module(module.name)):
                if found.examples and found.docstring not in seen:
                    yield Example(f"({found.name})", inspect.cleandoc(found.docstring or ""), module.name)


EXAMPLES: Final = list(list_examples())


@pytest.fixture(scope="module")
def world(migrated_file: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Any]]:
    folder = tmp_path_factory.mktemp("examples")
    shutil.copy(migrated_file, folder / "corevault.sqlite3")
    database = Database(make_engine(f"sqlite:///{folder / 'corevault.sqlite3'}"))
    house = make_house(database, folder)
    with database.write() as tx:
        keys = {role: rows.api_key(tx, role).secret for role in ("owner", "admin")}
    transport = Working(house)
    url = "http://corevault.test"
    client, admin = (Client(url, keys[role], transport=transport) for role in ("owner", "admin"))
    inside = httpx.ASGITransport(create_app(house.services, metrics=False))
    names = _fill(client) | {
        "client": client,
        "admin": admin,
        "async_client": AsyncClient(url, keys["owner"], transport=inside),
    }
    with capture_logs():  # which would be output of the examples
        yield names | {name: getattr(corevault, name) for name in corevault.__all__} | {"np": np, "asyncio": asyncio}
    transport.close()
    database.dispose()


def _fill(client: Client) -> dict[str, Any]:
    rng = np.random.default_rng(5)
    age, sex = rng.integers(18, 96, SLOTS), rng.integers(0, 2, SLOTS)
    sick = rng.random(SLOTS) < 1.0 / (1.0 + np.exp(-(age - 56) / 15))
    table = {"age": age, "sex": np.array(["female", "male"])[sex], "sick": sick.astype(int)}
    with pytest.warns(UserWarning, match="guarantees little"):
        dataset = client.datasets.create("clinic", SCHEMA, slots=SLOTS, epsilon=10.0)
    client.datasets.upload(dataset, table)
    for month in range(2):
        _add_month(client, month, table)
    for name in ("halted", "paused"):
        other = client.datasets.create(name, SCHEMA, slots=SLOTS, epsilon=1.0)
        run(begin(client._http, other.id, add_digest(prepare(table))))
    model = LogisticRegression(features=["age", "sex"], target="sick")
    job = client.jobs.wait(client.jobs.submit(dataset, model, size=20, epsilon=1.0))
    assert job.release_id is not None
    names = {"dataset": dataset, "schema": SCHEMA, "table": table, "model": model, "job": job, "topics": make_topics()}
    names |= {"fitted": make_network()}
    rows_model = corevault.MultivariateNormal(features=["age"])
    gaussian = client.jobs.wait(client.jobs.submit(dataset, rows_model, method="vips", epsilon=0.5))
    assert gaussian.release_id is not None
    names |= {"gaussian_release": client.releases.get(gaussian.release_id)}
    names |= {"belief": client.releases.belief(gaussian.release_id)}
    grouped = client.jobs.wait(client.jobs.submit(dataset, model, method="dp-groups", epsilon=1.0))
    assert grouped.release_id is not None
    names |= {"groups_release": client.releases.get(grouped.release_id)}
    names |= {"groups": client.releases.groups(grouped.release_id)}
    draws, weight = np.array([[0.0, 1.0], [1.0, 0.5], [2.0, 2.0]]), np.array([0.25, 0.5, 0.25])
    names |= {"particles": corevault.Particles(("a", "b"), draws, weight)}
    names |= {"monthly": LogisticRegression(features=["age", "sex"], target="sick")}
    return names | {"release": client.releases.get(job.release_id)}


def _add_month(client: Client, month: int, table: dict[str, Any]) -> None:
    """Adds a block of the series ``months``; half of its people return."""
    schema = Schema(integer("person", 0, 10_000), *SCHEMA.columns)
    unit = {"kind": "column", "column": "person", "max_rows": 1}
    block = client.datasets.create(
        f"month {month}", schema, slots=SLOTS, epsilon=1.0, series="months", privacy_unit=unit
    )
    client.datasets.upload(block, {"person": np.arange(SLOTS) + month * SLOTS // 2, **table})


def make_topics() -> Topics:
    weights = np.array([[60.0, 30.0, 1.0, 1.0], [1.0, 1.0, 20.0, 80.0]])
    return Topics(("fever", "cough", "knee", "fall"), weights, np.array([0.1, 0.1]))


def make_network() -> BeliefNetwork:
    weights = np.array([[3.0, -1.0], [3.0, -1.0], [-2.0, 4.0]])
    return BeliefNetwork(
        ("smoker", "cough", "runner"),
        weights,
        50 * np.eye(2),
        np.ones((3, 2)),
        np.zeros(2),
        np.array([-1.0, -1.0, -1.0]),
    )


def find_mistakes(example: Example, names: dict[str, Any]) -> str:
    """Runs an example. The differences from the outputs that it states; empty if there are none."""
    scope = dict(vars(importlib.import_module(example.home))) | names
    test = doctest.DocTestParser().get_doctest(example.text, scope, example.name, None, None)
    report = StringIO()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UntrustedRelease)
        doctest.DocTestRunner(verbose=False, optionflags=OPTIONS).run(test, out=report.write)
    return report.getvalue()


@pytest.mark.parametrize("example", EXAMPLES, ids=str)
@pytest.mark.long
def test_a_public_object_has_an_example_that_runs(
    example: Example, world: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COREVAULT_URL", "https://corevault.example")
    monkeypatch.setattr("time.sleep", lambda _: None)
    if (extra := EXTRAS.get(example.name.rpartition(".")[2])) is not None:
        pytest.importorskip(extra)
    assert find_mistakes(example, world) == ""
    plt.close("all")


def test_every_public_object_has_an_example() -> None:
    """An example that is skipped is none."""
    parser = doctest.DocTestParser()
    bare = [
        each.name
        for each in EXAMPLES
        if not [line for line in parser.get_examples(each.text) if doctest.SKIP not in line.options]
    ]
    assert bare == []
    assert len(EXAMPLES) > 150


def test_a_wrong_output_is_a_mistake() -> None:
    wrong: Callable[[str], str] = lambda text: find_mistakes(Example("wrong", text, "corevault"), {})  # noqa: E731
    assert "Expected:" in wrong(">>> 1 + 1\n3\n")
    assert wrong(">>> 1 + 1\n2\n") == ""
