"""W3: the observable outputs of a run do not reveal its content.

Whole jobs run through the real enclave with real noise, several times on each content. A noised output differs from run
to run. An output that is constant on each content, and differs between two contents, was not noised.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest
import structlog
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from sqlalchemy import select

from app import tracing
from app.datasets.models import Content
from app.db import Base, Database, make_engine
from app.health import gauges
from app.inference import registry
from app.main import create_app
from tests.factories import rows
from tests.factories.datasets import declared, entries, uploaded
from tests.factories.transport import AppTransport
from tests.factories.worker import House, make_house
from tests.workers.observations import Observer, find_differences
from tests.workers.support import TARGETS

pytestmark = [pytest.mark.sqlite, pytest.mark.slow]

SLOTS = 1_000
UNITS = {"whole": 731, "one less": 730, "few": 412}
"""Units of each content: the first two are neighbours."""
LEAST, MOST = 3, 14
"""Runs on each content. There are more of them while a difference between contents may still be chance."""
COLUMNS: list[dict[str, Any]] = [
    {"name": "age", "type": "integer", "lower": 0, "upper": 100},
    {"name": "dose", "type": "real", "lower": -5, "upper": 5},
    {"name": "sick", "type": "binary"},
    {"name": "visits", "type": "integer", "lower": 0, "upper": 20},
]
CURVES: list[Any] = [
    {"spline": "age", "df": 3},
    {"interaction": [{"polynomial": "age", "degree": 2}, "dose"]},
]
JOBS: dict[tuple[str, ...], dict[str, Any]] = {
    ("dp-psvi-surrogate", "logistic-regression"): {"privacy": {"epsilon": 0.05}, "parameters": {"rounds": 3}},
    ("dp-psvi-surrogate", "poisson-regression"): {"privacy": {"epsilon": 0.05}, "parameters": {"rounds": 3}},
    ("dp-psvi", "probit-regression"): {
        "privacy": {"noise_multiplier": 60.0, "sampling_rate": 1.0, "iterations": 3},
        "parameters": {"posterior_draws": 5},
    },
    ("dp-psvi", "gaussian-mean"): {
        "privacy": {"noise_multiplier": 60.0, "sampling_rate": 0.5, "iterations": 3},
        "parameters": {"posterior_draws": 5},
    },
    ("vips", "logistic-regression"): {
        "privacy": {"noise_multiplier": 150.0, "sampling_rate": 1.0, "iterations": 3},
    },
    ("vips", "gaussian"): {"privacy": {"epsilon": 0.05}},
    ("dp-groups", "logistic-regression"): {"privacy": {"epsilon": 0.05}, "parameters": {"groups": ["sick"]}},
    ("vips", "linear-regression"): {"privacy": {"epsilon": 0.05}},
    ("vips", "logistic-regression", "terms"): {
        "privacy": {"noise_multiplier": 150.0, "sampling_rate": 1.0, "iterations": 3},
    },
    ("dp-psvi-surrogate", "logistic-regression", "beta"): {
        "privacy": {"epsilon": 0.05},
        "parameters": {"rounds": 3, "beta": 0.3},
    },
    ("dp-psvi", "linear-regression", "beta"): {
        "privacy": {"noise_multiplier": 60.0, "sampling_rate": 1.0, "iterations": 3},
        "parameters": {"posterior_draws": 5, "beta": 0.3},
    },
    ("dp-vi", "linear-regression"): {"privacy": {"noise_multiplier": 150.0, "sampling_rate": 1.0, "iterations": 10}},
}


def table(units: int) -> bytes:
    """The first ``units`` of the same people."""
    rng = np.random.default_rng(5)
    ages, doses = rng.integers(0, 101, SLOTS), rng.uniform(-5, 5, SLOTS).round(4)
    sick, visits = rng.integers(0, 2, SLOTS), rng.integers(0, 21, SLOTS)
    lines = [f"{ages[i]},{doses[i]},{sick[i]},{visits[i]}" for i in range(units)]
    return "\n".join(["age,dose,sick,visits", *lines, ""]).encode()


class Laboratory:
    """An installation with one dataset for each content, all with the same declaration."""

    def __init__(self, house: House, client: httpx.Client, spans: InMemorySpanExporter) -> None:
        with house.database.write() as tx:
            self._owner, self.admin = rows.api_key(tx, "owner"), rows.api_key(tx, "admin")
        self.house = house
        self.ingested: list[list[tuple[Any, ...]]] = []
        self.datasets = {name: self._dataset(client, units) for name, units in UNITS.items()}
        self._observer = Observer(house, client, spans, self._names())

    def _dataset(self, client: httpx.Client, units: int) -> str:
        budget = {"epsilon": 20.0, "delta": 1e-6}
        dataset_id = str(declared(client, self._owner, columns=COLUMNS, slots=SLOTS, budget=budget)["id"])
        uploaded(client, self._owner, dataset_id, table(units))
        with structlog.testing.capture_logs() as logs:
            self.house.work()
        self.ingested.append([(*log, *log.values()) for log in logs if log.pop("content_id")])
        assert client.get(f"/v1/datasets/{dataset_id}", headers=self._owner.headers).json()["status"] == "ready"
        return dataset_id

    def _names(self) -> list[str]:
        """Random names that a content keeps from run to run."""
        with self.house.database.read() as session:
            contents = session.scalars(select(Content)).all()
            accounts = session.scalars(select(Base.metadata.tables["ledger_accounts"].c.id)).all()
        return [*self.datasets.values(), *accounts, *(content.id for content in contents)]

    def observe(self, content: str, job: tuple[str, ...]) -> set[str]:
        method, family, *rest = job
        target = TARGETS[family]
        features: list[Any] = [name for name in ("age", "dose", "visits") if name != target]
        model = {"family": family, "features": CURVES if "terms" in rest else features, "target": target}
        request = {"method": method, "size": 5, "model": model, "parameters": {}} | JOBS[job]
        return self._observer.run(self.datasets[content], self._owner, request)


@pytest.fixture(scope="module")
def laboratory(migrated_file: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Laboratory]:
    folder = tmp_path_factory.mktemp("laboratory")
    path = folder / "corevault.sqlite3"
    path.write_bytes(migrated_file.read_bytes())
    database, spans = Database(make_engine(f"sqlite:///{path}")), InMemorySpanExporter()
    house = make_house(database, folder)
    transport = AppTransport(create_app(house.services))
    with (
        pytest.MonkeyPatch.context() as patch,
        httpx.Client(transport=transport, base_url="http://corevault.test") as client,
    ):
        patch.setattr(gauges, "CACHE_SECONDS", 0.0)
        tracing.start(SimpleSpanProcessor(spans), "test")
        yield Laboratory(house, client, spans)
        tracing.stop()
    database.dispose()


def test_every_private_method_is_observed() -> None:
    assert {method for method, *_ in JOBS} == {method.id for method in registry.list_methods() if method.private}


def test_find_differences_returns_constant_statements_that_differ() -> None:
    constant, noised = {"size=5"}, [{"x=1"}, {"x=2"}]
    first, second = [{"n=7"} | constant | each for each in noised], [{"n=8"} | constant | each for each in noised]
    assert find_differences(first, second) == {"n=7", "n=8"}
    assert find_differences(first, first) == set()


@pytest.mark.long
@pytest.mark.parametrize("job", JOBS, ids=map("-".join, JOBS))
def test_outputs_of_a_run_do_not_reveal_its_content(laboratory: Laboratory, job: tuple[str, ...]) -> None:
    """W3: for neighbouring contents, and for contents with different numbers of units."""
    seen: dict[str, list[set[str]]] = {name: [] for name in UNITS}
    differences: dict[str, set[str]] = {}
    for runs in range(1, MOST + 1):
        for name, observed in seen.items():
            observed.append(laboratory.observe(name, job))
        differences = {name: find_differences(seen["whole"], seen[name]) for name in ("one less", "few")}
        if runs >= LEAST and not any(differences.values()):
            break
    assert differences == {"one less": set(), "few": set()}


def test_ingestion_reveals_nothing_of_the_content(laboratory: Laboratory) -> None:
    """W3: all tables of one declaration have the same size and the same log lines."""
    assert laboratory.ingested[0]
    assert all(logs == laboratory.ingested[0] for logs in laboratory.ingested)
    with laboratory.house.database.read() as session:
        names = [content.table_object for content in session.scalars(select(Content))]
    stored = entries(laboratory.house.areas.vault)
    sizes = {len(content) for path, content in stored.items() if path.rpartition("/")[2] in names}
    assert (len(names), len(sizes)) == (len(UNITS), 1)
