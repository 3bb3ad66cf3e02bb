"""Workers and their signs of life, in the API and on the system page."""

import threading
from datetime import timedelta

import httpx
import pytest
import sqlalchemy as sa
from sqlalchemy.exc import OperationalError

from app.dashboard.pages import system
from app.db import Database, now
from app.jobs import workers
from app.jobs.models import Worker
from app.jobs.workers import Liveness
from app.services import Services
from tests.factories import rows
from tests.factories.datasets import problem
from tests.factories.worker import House
from workers import presence
from workers.presence import Presence


def _begin(database: Database, name: str = "worker-1") -> str:
    with database.write() as tx:
        return workers.begin(tx, name=name, version="9.8.7", processes=3)


def _move(database: Database, worker_id: str, **ago: float) -> None:
    with database.write() as tx:
        tx.execute(sa.update(Worker).where(Worker.id == worker_id).values(seen_at=now() - timedelta(**ago)))


@pytest.mark.parametrize(
    ("seconds", "state"), [(0, "alive"), (29, "alive"), (31, "silent"), (-4, "alive"), (-60, "unknown")]
)
def test_a_worker_is_alive_only_with_a_recent_sign(seconds: float, state: str) -> None:
    """A time in the future has no known age, so it is unknown."""
    at = now()
    assert Liveness.of(at - timedelta(seconds=seconds), at) == state


def test_overseers_list_workers(house: House, client: httpx.Client, admin: rows.Key, auditor: rows.Key) -> None:
    killed = _begin(house.database, "worker-1")
    _begin(house.database, "worker-2")
    _move(house.database, killed, minutes=5)
    for key in (admin, auditor):
        items = client.get("/v1/workers", headers=key.headers).json()["items"]
        assert {each["name"]: each["state"] for each in items} == {"worker-1": "silent", "worker-2": "alive"}
    assert {each["version"] for each in items} == {"9.8.7"}
    assert set(items[0]) == {
        *("id", "name", "state", "seen_at", "started_at", "running_jobs", "processes", "version"),
    }


@pytest.mark.parametrize("role", ["owner", "analyst"])
def test_owners_and_analysts_see_no_workers(house: House, client: httpx.Client, role: str) -> None:
    with house.database.write() as tx:
        key = rows.api_key(tx, role)
    problem(client.get("/v1/workers", headers=key.headers), 403, "forbidden")


def test_workers_are_unknown_without_the_database(services: Services, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> None:
        raise OperationalError("", None, Exception())

    monkeypatch.setattr(system, "list_workers", fail)
    assert system._list_workers(services) is None


def test_a_worker_reports_every_few_seconds_until_it_ends(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    clock, running = [1000.0], [2]
    monkeypatch.setattr("workers.presence.time.monotonic", lambda: clock[0])
    worker = Presence(database, 3, lambda: running[0])
    worker.report()
    with database.read() as session:
        (first,) = workers.list_workers(session, limit=9)
    assert (first.running_jobs, first.processes, first.state) == (0, 3, "alive")
    worker.report()  # too early
    clock[0] += presence.EVERY_SECONDS
    worker.report()
    with database.read() as session:
        (second,) = workers.list_workers(session, limit=9)
    assert (second.id, second.running_jobs) == (first.id, 2)
    assert second.seen_at > first.seen_at
    worker.end()
    with database.read() as session:
        assert workers.list_workers(session, limit=9) == []


def test_a_removed_worker_signs_on_again(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = [1000.0]
    monkeypatch.setattr("workers.presence.time.monotonic", lambda: clock[0])
    worker = Presence(database, 1, lambda: None)
    worker.report()
    with database.write() as tx:
        tx.execute(sa.delete(Worker))
    clock[0] += presence.EVERY_SECONDS
    worker.report()
    with database.read() as session:
        assert len(workers.list_workers(session, limit=9)) == 1


def test_workers_that_are_silent_for_a_day_are_removed(database: Database) -> None:
    _move(database, _begin(database, "old"), days=1, seconds=1)
    _begin(database, "new")
    with database.read() as session:
        assert [each.name for each in workers.list_workers(session, limit=9)] == ["new"]


def test_the_sweeper_reports_also_without_its_lease(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each worker has a thread that sweeps, but one has the lease."""
    signs = list[str]()
    sweeper, stop = house.sweeper, threading.Event()

    def report(_: Presence) -> None:
        signs.append("report")
        stop.set()

    monkeypatch.setattr(Presence, "report", report)
    monkeypatch.setattr(Presence, "end", lambda _: signs.append("end"))
    monkeypatch.setattr(sweeper, "_presence", Presence(house.database, 1))
    monkeypatch.setattr(sweeper, "_renew_lease", lambda: False)
    sweeper.run(0.001, stop)
    assert signs == ["report", "end"]
