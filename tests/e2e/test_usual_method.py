"""The main job with the default method, through the SDK: quote, job, release, posterior."""

import csv
import io
from collections.abc import Iterator

import httpx
import numpy as np
import pytest
from corevault import (
    Client,
    Gaussian,
    Job,
    LogisticRegression,
    Pseudocoreset,
    Schema,
    binary,
    categorical,
    integer,
    logistic_laplace,
    real,
)

from tests.e2e.house import House, table

pytestmark = pytest.mark.process

EPSILON, SIZE = 1.5, 20
CONTENT = table(1999)
SCHEMA = Schema(integer("age", 0, 100), real("dose", -5, 5), categorical("group", ["a", "b", "c"]), binary("sick"))
MODEL = LogisticRegression(features=["age", "dose", "group"], target="sick")


@pytest.fixture(scope="module")
def client(house: House) -> Iterator[Client]:
    with Client(house.url, house.new_key("owner"), transport=httpx.HTTPTransport(verify=False)) as client:
        yield client


@pytest.fixture(scope="module")
def dataset(client: Client) -> str:
    created = client.datasets.create("clinic", SCHEMA, slots=2000, epsilon=4.0, delta=1e-6)
    client.datasets.upload(created.id, CONTENT)
    client.datasets.wait_until_ready(created.id)
    return created.id


@pytest.fixture(scope="module")
def job(client: Client, dataset: str) -> Job:
    """A job with a calibrated release: noise makes one in 200 centre-only, so there is a second attempt."""
    for _ in range(2):
        job = client.jobs.wait(client.jobs.submit(dataset, MODEL, size=SIZE, epsilon=EPSILON), timeout_seconds=120)
        if client.releases.download(str(job.release_id)).release.trusted:
            break
    return job


@pytest.fixture(scope="module")
def core(client: Client, job: Job) -> Pseudocoreset:
    return client.releases.download(str(job.release_id))


def test_quote_equals_the_cost_of_the_job(client: Client, dataset: str, job: Job) -> None:
    quote = client.quote(dataset, MODEL, size=SIZE, epsilon=EPSILON)
    assert quote.cost is not None
    assert quote.cost == job.cost
    assert EPSILON * 0.99 < quote.cost.epsilon <= EPSILON
    assert quote.warnings == ()


def test_ledger_settles_the_planned_events(client: Client, dataset: str, job: Job) -> None:
    """W4, W8: one charge; reserved, settled and certified events are equal."""
    booked = {entry.kind: entry.event for entry in client.datasets.ledger(dataset) if entry.job_id == job.id}
    assert set(booked) == {"reserved", "opened", "settled"}
    statement = client.releases.verify(str(job.release_id))
    assert booked["reserved"]["events"] == booked["settled"]["events"] == statement["events"]


def test_posterior_of_the_points_is_near_that_of_the_table(core: Pseudocoreset) -> None:
    rows = list(csv.DictReader(io.StringIO(CONTENT.decode())))
    columns = {name: np.array([row[name] for row in rows]) for name in rows[0]}
    target = columns["sick"].astype(float)
    full = logistic_laplace(core.design_matrix(columns), target, names=core.columns)
    assert core.release.method == "dp-psvi-surrogate"
    assert core.release.trusted is True
    points = core.laplace(noise=False)
    assert points.kl(full) < 0.05 * Gaussian.prior(core.columns, core.prior_scale).kl(full)


def test_intervals_of_the_release_include_its_noise(core: Pseudocoreset) -> None:
    """W16: the belief is verified with the points, and intervals are wider by it."""
    assert core.belief is not None
    assert core.belief.noise is not None
    assert core.release.reliability is not None
    assert core.release.reliability.is_calibrated
    assert np.all(core.posterior().sd > core.posterior(noise=False).sd)
    variance = np.diag(core.laplace(noise=False).covariance) + np.diag(core.belief.noise.covariance)
    np.testing.assert_allclose(core.laplace().sd, np.sqrt(variance))
