"""The API and its ledger agree with a small model, after any calls.

The model has a zero-concentrated budget: a job of T full-batch answers at noise s adds T / (2 s^2). The compose
epsilon follows in closed form, over a fine grid of orders. The filter decides which jobs are admitted, and a quote must
predict the decision. The cost must never exceed the limit, and a refusal must change only the count of refusals.
"""

import shutil
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from unittest import mock

import httpx
import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, initialize, invariant, precondition, rule

from app import crashpoints
from app.db import Database, make_engine, now
from app.jobs import repository
from app.jobs.models import Job
from tests.factories import rows
from tests.factories.datasets import declaration
from tests.factories.worker import SLOTS, House, job_body, make_house, memory_tables
from tests.faults import invariants
from tests.faults.injection import ProcessLost
from tests.jobs.test_lifecycle_machine import migrated
from workers.sweeper import LEASE

pytestmark = pytest.mark.sqlite
STEPS = 2
EPSILON, DELTA, CAP = 2.0, 1e-6, 1.0
NOISES = [4.0, 7.0, 12.0, 40.0]
ORDERS = 1 + np.exp(np.linspace(np.log(0.01), np.log(1e5), 20_001))


def compose(rho: float, delta: float) -> float:
    """Compute the epsilon of Gaussian answers that add up to ``rho``.

    Canonne, Kamath & Steinke 2020, proposition 12.
    """
    loss = ORDERS * rho + np.log1p(-1 / ORDERS) - np.log(delta * ORDERS) / (ORDERS - 1)
    return max(0.0, float(loss.min())) if rho else 0.0


@dataclass
class Account:
    """The model of an account."""

    epsilon: float = EPSILON
    highest: float = EPSILON
    delta: float = DELTA
    refused: int = 0
    spent: float = 0.0
    rho: dict[str, float] = field(default_factory=dict)
    opened: set[str] = field(default_factory=set)
    ended: set[str] = field(default_factory=set)

    def settled(self) -> set[str]:
        return self.opened & self.ended

    def live(self) -> set[str]:
        return self.rho.keys() - self.ended

    def total(self, jobs: set[str]) -> float:
        return compose(sum(self.rho[job] for job in jobs), self.delta)


class Books(RuleBasedStateMachine):
    """W8, W9, W10: after every step the budget equals the model's budget."""

    datasets: Bundle[str] = Bundle("datasets")
    jobs: Bundle[str] = Bundle("jobs")

    def __init__(self) -> None:
        super().__init__()
        self._folder = tempfile.TemporaryDirectory()
        folder = Path(self._folder.name)
        shutil.copy(migrated(), folder)
        self.database = Database(make_engine(f"sqlite:///{folder}/corevault.sqlite3"))
        self.house: House = make_house(self.database, folder)
        with self.database.write() as tx:
            self.owner, self.admin = rows.api_key(tx, "owner"), rows.api_key(tx, "admin")
        self.headers = dict(self.owner.headers)
        self.client = self.house.client()
        self.model = Account()
        self.caps: dict[str, float | None] = {}
        self.deleted: set[str] = set()

    def teardown(self) -> None:
        self.client.close()
        with self.database.read() as session:
            assert self.house.ledger.verify(session) == ()
        self.database.dispose()
        self._folder.cleanup()

    def call(self, method: str, path: str, json: Any = None) -> httpx.Response:
        return self.client.request(method, path, json=json, headers=self.headers)

    def declare(self, epsilon: float) -> str:
        budget = {"epsilon": epsilon, "delta": self.model.delta}
        body = declaration(slots=SLOTS, population="people", budget=budget)
        answer = self.call("POST", "/v1/datasets", body)
        assert answer.status_code == 201, answer.text
        dataset_id = str(answer.json()["id"])
        with self.database.write() as tx:
            rows.content(tx, dataset_id, table_object="0" * 32, wrapped_key=b"wrapped")
        return dataset_id

    @initialize(target=datasets)
    def open(self) -> str:
        first = self.declare(EPSILON)
        self.caps[first] = None
        return first

    @precondition(lambda self: len(self.caps) == 1)
    @rule(target=datasets)
    def declare_another(self) -> str:
        """Declare a dataset of the same people; its budget is a cap."""
        second = self.declare(min(CAP, self.model.epsilon))
        self.caps[second] = 0.0
        return second

    @rule(target=jobs, dataset=datasets, noise=st.sampled_from(NOISES))
    def submit(self, dataset: str, noise: float) -> str:
        privacy = {"noise_multiplier": noise, "sampling_rate": 1.0, "iterations": STEPS}
        body = job_body(dataset, privacy=privacy)
        quote, answer = self.call("POST", "/v1/quotes", body), self.call("POST", "/v1/jobs", body)
        if dataset in self.deleted:
            assert (quote.status_code, answer.status_code) == (409, 409)
            return ""
        assert quote.json()["affordable"] == (answer.status_code == 202)
        if answer.status_code == 409:
            assert answer.json()["code"] == "budget_exceeded"
            self.model.refused += 1
            return ""
        job_id = str(answer.json()["id"])
        self.model.rho[job_id] = STEPS / (2 * noise**2)
        assert answer.json()["cost"]["epsilon"] == pytest.approx(self.model.total({job_id}), rel=0.02)
        return job_id

    @rule(job=jobs, crash=st.sampled_from([None, None, "after-open", "mid-iteration", "before-publish"]))
    def run(self, job: str, crash: str | None) -> None:
        """Deliver the job's message once; if the worker dies, expire its lease and sweep."""
        if not job:
            return
        live = job in self.model.live()

        def reach(point: str) -> None:
            if point == crash:
                raise ProcessLost

        with mock.patch.object(crashpoints, "reach", reach):
            try:
                self.house.runner(memory_tables).run(job)
                died = False
            except ProcessLost:
                died = True
        assert died == (live and crash is not None)
        if live:
            self.model.opened.add(job)
        if died:
            self.lose(job)
        elif live:
            self.model.ended.add(job)

    def lose(self, job: str) -> None:
        with self.database.write() as tx:
            repository.change(tx, job, Job.status == "running", lease_until=now() - LEASE)
        self.house.sweeper.sweep()
        if self.house.read(job).status == "failed":  # it has no attempts left
            self.model.ended.add(job)

    @rule(job=consumes(jobs))
    def cancel(self, job: str) -> None:
        if job:
            assert self.call("POST", f"/v1/jobs/{job}/cancel").status_code == 200
            self.model.ended.add(job)

    @rule(epsilon=st.sampled_from([0.5, 1.0, 1.5, 2.5]))
    def change_limit(self, epsilon: float) -> None:
        """Change the account's limit.

        It may be lowered, but not below the spent budget. Above the highest limit so far, it adds delta.
        """
        first = next(iter(self.caps))
        higher = epsilon > self.model.epsilon
        wanted = {"epsilon": epsilon, "delta": DELTA} if higher else {"epsilon": epsilon}
        answer = self.call("PUT", f"/v1/datasets/{first}/budget", wanted)
        if answer.status_code == 200:
            self.model.delta += DELTA if epsilon > self.model.highest else 0
            self.model.epsilon = epsilon
            self.model.highest = max(self.model.highest, epsilon)
            return
        assert answer.json()["code"] == "state_conflict", answer.text
        assert first in self.deleted or epsilon < self.model.total(set(self.model.opened | self.model.live())) * 1.02

    @rule()
    def rotate(self) -> None:
        """Rotate the owner's key: the old secret ends at once, and the account does not change."""
        answer = self.client.post(f"/v1/api-keys/{self.owner.id}/rotate", headers=self.admin.headers)
        assert answer.status_code == 200, answer.text
        assert self.call("GET", "/v1/me").status_code == 401
        self.headers = {"Authorization": f"Bearer {answer.json()['key']}"}

    @precondition(lambda self: len(self.caps) == 2 and len(self.model.rho) > 2)
    @rule(dataset=datasets)
    def delete(self, dataset: str) -> None:
        """Delete a dataset: its jobs end, and its spent budget stays spent."""
        if dataset in self.deleted:
            return
        assert self.call("DELETE", f"/v1/datasets/{dataset}").status_code == 200
        self.deleted.add(dataset)
        self.model.ended |= {job for job in self.model.live() if self.house.read(job).dataset_id == dataset}

    @invariant()
    def the_budget_is_the_models(self) -> None:
        model = self.model
        for dataset in self.caps:
            budget = self.call("GET", f"/v1/datasets/{dataset}/budget").json()
            counts = {"settled": len(model.settled()), "reserved": len(model.live()), "refused": model.refused}
            assert budget["jobs"] == counts
            assert budget["limit"]["delta"] == pytest.approx(model.delta)
            if self.caps[dataset] is None:
                assert budget["limit"]["epsilon"] == model.epsilon
            spent, reserved = budget["spent"]["epsilon"], budget["reserved"]["epsilon"]
            charged = model.total(model.settled() | model.live())
            assert spent + reserved == pytest.approx(charged, rel=0.02, abs=1e-6)
            assert spent == pytest.approx(model.total(model.opened), rel=0.02, abs=1e-6)
            assert spent + reserved <= model.highest
        if self.caps:
            assert spent >= model.spent - 1e-9 or model.delta > DELTA, "the spent budget never falls"
            model.spent = spent

    @invariant()
    def what_has_ended_has_its_entries(self) -> None:
        with self.database.read() as session:
            for job in self.model.ended:
                row = session.get_one(Job, job)
                assert row.status in invariants.ENDED
                assert self.house.ledger.state(session, job) == ("settled" if job in self.model.opened else "voided")


Books.TestCase.settings = settings(
    max_examples=10,
    stateful_step_count=15,
    derandomize=True,
    deadline=None,
    phases=[Phase.generate],  # no shrinking: steps are slow, and a failing history is short
    suppress_health_check=list(HealthCheck),
)
test_books = pytest.mark.long(pytest.mark.timeout(300)(Books.TestCase))
