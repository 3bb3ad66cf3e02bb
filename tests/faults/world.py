"""One installation in this process, with random actions and faults from a seed.

Messages are delivered in any order, twice, late or never. Processes die at every named point. Between two steps of one
worker other workers act, so that its job may belong to another worker afterwards. Clocks jump; commits or their replies
get lost; the disk is full; a backup of the database is restored. Everything follows from the seed, so that a failure
can be replayed.
"""

import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import httpx
import pytest
from sqlalchemy import event

from app.datasets.disposal import Disposal
from app.db import Database
from app.errors import DependencyUnavailable, NotFound
from app.jobs import repository
from app.jobs.models import Job
from app.main import create_app
from app.queue import RUN_JOB
from tests.factories import rows
from tests.factories.datasets import stored
from tests.factories.transport import AppTransport
from tests.factories.worker import House, MemoryRows, job_body, make_house
from tests.faults import invariants
from tests.faults.backups import Backup, Released, read_released
from tests.faults.injection import DatabaseLost, Faults, FaultyStore, ProcessLost, inject
from workers.assignments import Assignment
from workers.run_task import Bounds, Pace
from workers.sweeper import Sweeper

API_POINTS = ("before-reserve", "after-reserve", "before-queueing")
RUN_POINTS = ("after-open", "mid-gather", "mid-iteration", "before-publish", "after-publish")
STEPS = 2
RESTORED_EVERY = 10
"""One seed of this number restores the database from a backup."""
NOISES = (4.0, 8.0, 15.0, 30.0)
"""Noise multipliers: with the first two jobs fill an account, with the last all jobs fit."""
DAY = timedelta(days=1)
REST_ROUNDS = 40
LOST = (ProcessLost, DatabaseLost)


class Installation:
    """The installation that several seeds share, because starting one takes longer than a run.

    Use as a context manager.
    """

    def __init__(self, database: Database, folder: Path) -> None:
        self.faults = Faults()
        self.mark_url = (folder / "mark").as_uri()
        house = make_house(database, folder, mark_url=self.mark_url)
        self.areas = house.areas
        faulty: Any = FaultyStore(self.areas.released, self.faults)
        self.house: House = replace(house, areas=replace(house.areas, released=faulty))
        with database.write() as tx:
            self.owner = rows.api_key(tx, "owner")
        if database.engine.dialect.name == "sqlite":  # no machine loses power here, and disks are slow
            event.listen(database.engine, "connect", lambda connection, _: connection.execute("PRAGMA synchronous=OFF"))
            database.engine.dispose()
        self.forgotten: set[str] = set()
        self._application = create_app(self.house.services, metrics=False)
        self._injection = inject(self.faults)

    def __enter__(self) -> "Installation":
        self._injection.__enter__()
        self.start_api()
        return self

    def __exit__(self, *_: object) -> None:
        self.api.close()
        self._injection.__exit__(None, None, None)

    def start_api(self) -> None:
        """Start the API, or restart it after it has died."""
        self.api = httpx.Client(transport=AppTransport(self._application), base_url="http://corevault.test")


class Rows(MemoryRows):
    """A table whose reader may die."""

    def __init__(self, faults: Faults) -> None:
        super().__init__()
        self._faults = faults

    def gather(self, indices: Any) -> Any:
        self._faults.reach("mid-gather")
        return super().gather(indices)


class World:
    """One seed: a new dataset with an account, a few jobs, and random actions on them."""

    def __init__(self, installation: Installation, seed: int) -> None:
        self.chance = random.Random(seed)
        self.installation, self.house, self.faults = installation, installation.house, installation.faults
        self.owner = installation.owner
        self.faults.clear()
        self.house.queue.sent.clear()
        self.dataset_id = self.house.ready_dataset(self.owner)
        self.requests: dict[str, dict[str, Any]] = {}
        self.answers: dict[str, str] = {}
        self.history: list[str] = []
        self.settled: set[str] = set()
        self.depth, self.most = 0, self.chance.choice([1, 2, 2, 3])
        self.backup: Backup | None = None
        self.releases: Released = {}
        self.outcome: str | None = None
        sqlite = self.house.database.engine.dialect.name == "sqlite"
        self.restores = sqlite and seed % RESTORED_EVERY == RESTORED_EVERY - 1
        self.restored = False
        self.sweeper = self._new_sweeper()

    def act(self) -> None:
        """Carry out one random action."""
        actions: dict[Callable[[], None], int] = {
            self.submit: 3 if len(self.requests) < self.most else 0,
            self.repeat: 1 if self.requests else 0,
            self.deliver: 6,
            self.sweep: 3,
            self.lose_a_message: 1,
            self.empty_the_broker: 1,
            self.cancel: 1,
            self.jump: 1,
            self.restart_the_sweeper: 1,
            self.back_up: 8 if self.restores and self.backup is None and self.requests else 0,
            self.restore: 1 if self.backup is not None and not self.restored and not self.depth else 0,
            self.delete: 1 if len(self.history) > 8 and not self.chance.randrange(6) else 0,
        }
        (action,) = self.chance.choices(list(actions), list(actions.values()))
        self.history.append("  " * self.depth + action.__name__)
        action()

    def submit(self) -> None:
        key = f"k{len(self.requests)}"
        privacy = {"noise_multiplier": self.chance.choice(NOISES), "sampling_rate": 1.0, "iterations": STEPS}
        self.requests[key] = job_body(self.dataset_id, privacy=privacy)
        self._post(key)

    def repeat(self) -> None:
        """Repeat a request, as a client or a proxy that got no answer."""
        self._post(self.chance.choice(list(self.requests)))

    def deliver(self) -> None:
        """Deliver a random message; sometimes it stays in the queue, and is delivered again."""
        messages = self.house.queue.sent
        if not messages:
            return
        message = self.chance.choice(messages)
        if self.chance.random() < 0.7:
            messages.remove(message)
        assert message[0] == RUN_JOB
        self._run(message[1])

    def sweep(self) -> None:
        """Let some time pass, then sweep. The sweeper may die as well."""
        self.faults.database_ahead += timedelta(seconds=self.chance.choice([0, 1, 6, 11, 70]))
        self.faults.machine_ahead = self.faults.database_ahead
        with self._random_fault(("before-queueing",)), suppress(*LOST):
            self.sweeper.sweep()

    def lose_a_message(self) -> None:
        if self.house.queue.sent:
            self.house.queue.sent.pop(self.chance.randrange(len(self.house.queue.sent)))

    def empty_the_broker(self) -> None:
        self.house.queue.sent.clear()

    def cancel(self) -> None:
        if self.answers:
            job_id = self.chance.choice(list(self.answers.values()))
            with self._random_fault(()), suppress(*LOST):
                self._call("POST", f"/v1/jobs/{job_id}/cancel")

    def jump(self) -> None:
        """Change the database's clock, this machine's clock, or both."""
        by = self.chance.choice([-DAY, DAY, timedelta(minutes=-3), timedelta(minutes=3)])
        which = self.chance.choice(["database", "machine", "both"])
        if which != "machine":
            self.faults.database_ahead += by
        if which != "database":
            self.faults.machine_ahead += by

    def restart_the_sweeper(self) -> None:
        self.sweeper = self._new_sweeper()

    def delete(self) -> None:
        with self._random_fault(()), suppress(*LOST):
            self._call("DELETE", f"/v1/datasets/{self.dataset_id}")

    def back_up(self) -> None:
        """Back up the database, possibly while a worker is paused."""
        self.backup = Backup(self.house, self.installation.mark_url)

    def restore(self) -> None:
        """Restore the backup; releases that the database has lost must stay charged."""
        assert self.backup is not None
        releases = read_released(self.house.database, self.dataset_id)
        self.backup.restore()
        self.restored = True
        if self.backup.is_behind():
            self.releases = releases
            self._check_refusal()
            self.outcome = self.backup.reconcile()
        self.history.append(f"- {self.outcome or 'not behind'}")
        with self.house.database.read() as session:
            self.answers = {key: job_id for key, job_id in self.answers.items() if session.get(Job, job_id)}
            self.settled = {job_id for job_id in self.settled if self._state(job_id) == "settled"}

    def _check_refusal(self) -> None:
        """Check that no job is accepted or opened before the database is reconciled."""
        for job_id in [*self._unended(), "job_forgotten"]:
            with pytest.raises(DependencyUnavailable, match="reconcile"):
                self.house.runner(self._tables).run(job_id)
        answer = self._call("POST", "/v1/jobs", json=job_body(self.dataset_id), key=f"{self.dataset_id}-refused")
        assert (answer.status_code, answer.json()["code"]) == (503, "dependency_unavailable"), answer.text

    def come_to_rest(self) -> None:
        """Stop all faults; every job must end in a bounded time, and its objects are tidied up."""
        self.faults.clear()
        for _ in range(REST_ROUNDS):
            if not self._unended():
                break
            self.faults.database_ahead += timedelta(seconds=61)
            self.faults.machine_ahead += timedelta(seconds=61)
            self.sweeper._renew_at = 0.0
            self.sweeper.sweep()
            while self.house.queue.sent:
                self._run(self.house.queue.sent.pop(0)[1])
        for ahead in (timedelta(), timedelta(hours=1)):
            self.faults.machine_ahead += ahead
            self.faults.database_ahead += timedelta(seconds=61)  # so that the lease of an earlier sweeper has expired
            self.sweeper._rare_at = self.sweeper._renew_at = 0.0
            self.sweeper.sweep()

    def check(self) -> None:
        """Check the invariants after all jobs have ended."""
        house, there = self.house, set(stored(self.installation.areas))
        if self.restored:
            releases = self.releases | read_released(house.database, self.dataset_id)
            invariants.check_reconciled(house.database, house.ledger, self.dataset_id, self.outcome, releases.values())
            self.installation.forgotten = there
        else:
            invariants.check(house.database, house.ledger, [self.dataset_id])
            invariants.check_store(house.database, there, self.installation.forgotten & there)
        with house.database.read() as session:
            assert all(house.ledger.state(session, job_id) == "settled" for job_id in self.settled)
            assert all(session.get(Job, job_id) for job_id in self.answers.values()), "an accepted job is lost"

    def _run(self, job_id: str) -> None:
        bounds = Bounds(stopping=(lambda: True) if self._fails(0.1) else (lambda: False))
        runner = self.house.runner(self._tables, Pace(10.0, 3600.0), bounds=bounds)
        with self._random_fault(RUN_POINTS), suppress(*LOST):
            runner.run(job_id)
        if self._state(job_id) == "settled":
            self.settled.add(job_id)

    def _state(self, job_id: str) -> str | None:
        """Read the state of a job's reservation; None if a restored database does not have the job."""
        with self.house.database.read() as session, suppress(NotFound):
            return self.house.ledger.state(session, job_id)
        return None

    @contextmanager
    def _tables(self, _: Assignment) -> Iterator[Rows]:
        yield Rows(self.faults)

    def _post(self, key: str) -> None:
        """Submit under the request's idempotency key, so that a repeated request is one job."""
        with self._random_fault(API_POINTS), suppress(*LOST):
            answer = self._call("POST", "/v1/jobs", json=self.requests[key], key=f"{self.dataset_id}-{key}")
            if answer.status_code == 202:
                job_id = answer.json()["id"]
                assert self.answers.setdefault(key, job_id) == job_id, "one request, two jobs"
            else:
                assert answer.json()["code"] in {"budget_exceeded", "state_conflict", "dependency_unavailable"}, (
                    answer.text
                )

    def _call(self, method: str, path: str, *, json: Any = None, key: str | None = None) -> httpx.Response:
        headers = self.owner.headers | ({} if key is None else {"Idempotency-Key": key})
        try:
            return self.installation.api.request(method, path, json=json, headers=headers)
        except ProcessLost:
            self.installation.start_api()
            raise

    @contextmanager
    def _random_fault(self, points: tuple[str, ...]) -> Iterator[None]:
        """With some probability, inject one fault into the body. Only one worker is paused at a time."""
        if not self._fails(0.6):
            yield
            return
        kinds = ["crash", "others", "others"] if points else []
        kind = self.chance.choice([*kinds[: 1 if self.depth else 3], "commit", "disk"])
        faults = self.faults
        if kind in {"crash", "others"}:
            faults.point, faults.after = self.chance.choice(points), self.chance.randint(1, 2)
            safe = faults.point not in {"before-reserve", "after-reserve"}  # these hold the database's lock
            faults.action = self._run_others if kind == "others" and safe else _die
        elif kind == "commit":
            faults.commit, faults.commits = self.chance.choice(["lost", "answer lost"]), self.chance.randint(1, 5)
        else:
            faults.disk_full = True
        self.history.append("  " * self.depth + f"- {kind} {faults.point or faults.commit or ''}")
        try:
            yield
        finally:
            faults.clear()

    def _run_others(self) -> None:
        """Let others act while one worker is paused, which may lose its job."""
        self.depth += 1
        if self._fails(0.5):
            self.history.append("  overtake")
            self.faults.database_ahead += timedelta(seconds=11)
            self.sweeper._renew_at = 0.0
            self.sweep()
            self.deliver()
        for _ in range(self.chance.randint(0, 3)):
            self.act()
        self.depth -= 1

    def _fails(self, probability: float) -> bool:
        return self.chance.random() < probability

    def _unended(self) -> list[str]:
        with self.house.database.read() as session:
            return list(repository.find_unended(session, self.dataset_id))

    def _new_sweeper(self) -> Sweeper:
        house = self.house
        return Sweeper(house.database, house.ledger, house.lifecycle, house.queue, Disposal(house.areas))


def _die() -> None:
    raise ProcessLost


def live(installation: Installation, seed: int, length: int = 12) -> list[str]:
    """Run one seed, longer if a backup is restored; return the history of its actions."""
    world = World(installation, seed)
    try:
        while len(world.history) < length * (2 if world.restores else 1):
            world.act()
        if world.backup is not None and not world.restored:
            world.restore()
        world.come_to_rest()
        world.check()
    except BaseException as error:
        error.add_note("\n".join([f"seed {seed}:", *world.history]))
        raise
    return world.history
