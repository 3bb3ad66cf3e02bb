"""Limits of runs follow from plan and declared facts, and end runs over them."""

import mmap
import os
import resource
import signal
import time
import tracemalloc
from collections.abc import Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from app.inference import registry
from app.inference.conjugate import make_run_problem
from app.inference.core import plan_json
from app.inference.core.facts import Column, DeclaredFacts
from app.inference.core.plan import Mechanism, MechanismPlan, ModelSpec, PlanRequest
from app.inference.private_zone.queries import GroupPotentialSum, PotentialSum
from tests.factories import rows
from tests.factories.worker import House, MemoryRows, memory_tables
from tests.workers.support import TARGETS, kinds
from workers.heartbeat import Heartbeat, LimitExceeded
from workers.run_limits import (
    BASE_BYTES,
    BASE_SECONDS,
    NOISE_OPERATIONS,
    OPERATIONS_A_SECOND,
    RunLimits,
    compute_run_limits,
    confine,
)
from workers.run_task import Bounds

SITES = tuple(map(str, range(500)))
COLUMNS = (
    Column("age", "integer", 0, 100),
    Column("dose", "real", -5, 5),
    Column("group", "categorical", categories=("a", "b", "c")),
    Column("sick", "binary"),
    Column("visits", "integer", 0, 20),
)


def facts(slots: int = 10_000, **changes: Any) -> DeclaredFacts:
    return replace(DeclaredFacts(COLUMNS, slots, {"kind": "row"}, "private", 1e-6), **changes)


def limits(declared: DeclaredFacts, scale: float = 1.0, **changes: Any) -> RunLimits:
    options = {"noise_multiplier": 30.0, "sampling_rate": 0.1, "iterations": 100, "draws": 100, "size": 20} | changes
    mechanism = Mechanism(options["noise_multiplier"], options["sampling_rate"], options["iterations"])
    model = ModelSpec("logistic-regression", ("age", "group"), "sick")
    parameters = {"posterior_draws": options["draws"]}
    request = PlanRequest("dp-psvi", options["size"], model, parameters, mechanism)
    return compute_run_limits(registry.find_method("dp-psvi").plan(request, declared), declared, scale)


def test_limits_grow_with_rows_draws_and_iterations() -> None:
    """W14: limits follow from the plan."""
    least = limits(facts())
    assert BASE_SECONDS < least.seconds < limits(facts(), iterations=1000).seconds
    assert least.seconds < limits(facts(), draws=1000).seconds
    assert least.seconds < limits(facts(10_000_000)).seconds
    assert BASE_BYTES < least.memory_bytes < limits(facts(1_000_000)).memory_bytes
    assert limits(facts(10**9)).memory_bytes < limits(facts(10**6)).memory_bytes * 40, "gathered rows are bounded"
    by_person = facts(unit={"kind": "column", "column": "person", "max_rows": 20})
    assert least.seconds < limits(by_person).seconds
    assert limits(facts(), 3.0).seconds == pytest.approx(3 * least.seconds)
    assert least.hard_seconds > least.seconds
    assert least.address_bytes > least.hard_bytes > least.memory_bytes


def test_limits_do_not_depend_on_rows(house: House, owner: rows.Key, monkeypatch: pytest.MonkeyPatch) -> None:
    """W14: a plan has the same limits on all rows."""
    given: list[RunLimits] = []
    monkeypatch.setattr(Heartbeat, "set_limits", lambda _, limits, end: given.append(limits))
    dataset_id = house.ready_dataset(owner)

    class Others(MemoryRows):
        def gather(self, indices: Any) -> Mapping[str, Any]:
            return {name: np.zeros_like(values) for name, values in super().gather(indices).items()}

    @contextmanager
    def others(_: Any) -> Any:
        yield Others()

    for tables in (memory_tables, others):
        job_id = house.job(dataset_id, owner)
        house.runner(tables).run(job_id)
        assert house.read(job_id).status == "succeeded"
    assert given[0] == given[1]


@pytest.mark.parametrize("scale", [1e-7, 1.0])
def test_run_over_its_soft_limits_fails_and_is_charged(house: House, owner: rows.Key, scale: float) -> None:
    """W10: a run that ends after opening is never refunded, and its account is not frozen."""
    job_id = house.job(house.ready_dataset(owner), owner)
    house.runner(memory_tables, bounds=Bounds(scale)).run(job_id)
    job = house.read(job_id)
    assert (job.status, job.error_code) == (("succeeded", None) if scale == 1 else ("failed", "run_failed"))
    assert (house.charge(job_id), job.attempts) == ("settled", 1)
    assert "frozen" not in kinds(house, job.dataset_id)


def test_memory_beyond_the_soft_limit_stops_a_run() -> None:
    heartbeat = Heartbeat(lambda *_: pytest.fail("too soon"), 60, 60)
    heartbeat.set_limits(RunLimits(60, 32 << 20), lambda: None)
    heartbeat.step(1)
    with mmap.mmap(-1, 96 << 20) as page:
        page.write(b"x" * len(page))
        with pytest.raises(LimitExceeded):
            heartbeat.step(2)
    heartbeat.step(3)


def test_heartbeat_ends_a_run_beyond_its_hard_limits() -> None:
    """The heartbeat's thread ends it: the run itself may be stuck in a long step."""
    ended: list[float] = []
    started = time.monotonic()
    limits = RunLimits(-29.9, 1 << 40)  # hard: 0.2 seconds
    with Heartbeat(lambda *_: pytest.fail("too soon"), 0.05, 60) as heartbeat:
        heartbeat._beat = lambda *_: heartbeat._hold
        heartbeat.set_limits(limits, lambda: ended.append(time.monotonic()))
        while not ended and time.monotonic() < started + 20:
            time.sleep(0.01)
    assert ended
    assert ended[0] - started >= limits.hard_seconds


def run_in_child(action: Any) -> int:
    """Run ``action`` in a child process; return its exit code, or minus the signal that ended it."""
    child = os.fork()
    if child == 0:
        try:
            action()
            os._exit(0)
        except MemoryError:
            os._exit(7)
        finally:
            os._exit(8)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def test_the_kernel_refuses_memory_beyond_the_hard_limit() -> None:
    def grow(size: int) -> None:
        with confine(RunLimits(60, 16 << 20)):
            np.ones(size, dtype=np.uint8)

    assert run_in_child(lambda: grow(8 << 20)) == 0
    assert run_in_child(lambda: grow(8 << 30)) == 7


@pytest.mark.slow
def test_the_kernel_ends_a_process_beyond_its_processor_time() -> None:
    def spin() -> None:
        with confine(RunLimits(-29.9, 1 << 40)):
            while True:
                pass

    assert run_in_child(spin) == -signal.SIGXCPU


def test_limits_end_with_the_run() -> None:
    kinds = (resource.RLIMIT_AS, resource.RLIMIT_CPU)
    before = [resource.getrlimit(kind) for kind in kinds]
    with confine(limits(facts())):
        assert [resource.getrlimit(kind) for kind in kinds] != before
    assert [resource.getrlimit(kind) for kind in kinds] == before


FEATURES = {"latent-dirichlet-allocation": ("group",), "sigmoid-belief-network": ("sick",)}
"""Features of models that take neither ages nor doses."""
PAIRS = [
    (method.id, family.name)
    for method in registry.list_methods()
    for family in registry.list_families()
    if method.private and registry.takes(method, family)
]


@pytest.mark.parametrize(("method", "family"), PAIRS)
def test_private_plan_has_finite_limits_above_the_size_of_its_rows(method: str, family: str) -> None:
    """An attempt's memory is bounded by its plan."""
    documents = {"kind": "column", "column": "person", "max_rows": 20}
    declared = facts(1_000_000, **({"unit": documents} if family == "latent-dirichlet-allocation" else {}))
    target = TARGETS.get(family)
    features = FEATURES.get(family, tuple(name for name in ("age", "dose") if name != target))
    chosen = {"groups": ["group"]} if method == "dp-groups" else {}
    request = PlanRequest(method, 30, ModelSpec(family, features, target), chosen, None, 2.0)
    plan = registry.find_method(method).plan(request, declared)
    plan_limits = compute_run_limits(plan_json.from_json(plan_json.to_json(plan)), declared)
    assert BASE_BYTES + 4 * declared.slots < plan_limits.memory_bytes < 1 << 40
    assert BASE_SECONDS < plan_limits.seconds < 1e9


def _plan_topics(topics: int, words: int, length: int, documents: int = 400_000) -> tuple[MechanismPlan, DeclaredFacts]:
    """Plan one pass over the documents, in 20 iterations."""
    columns = (
        Column("person", "integer", 0, 1e9),
        Column("word", "categorical", categories=tuple(map(str, range(words)))),
    )
    unit = {"kind": "column", "column": "person", "max_rows": length}
    declared = DeclaredFacts(columns, documents, unit, "private", 1e-6)
    spec = ModelSpec("latent-dirichlet-allocation", ("word",), None, topics=topics)
    return registry.find_method("vips").plan(
        PlanRequest("vips", 1, spec, {}, Mechanism(1.24, 0.05, 20)), declared
    ), declared


WORD_SECONDS = {(50, 8000, 100): 1.6e-6, (50, 8000, 500): 1.4e-6, (10, 1000, 100): 7.9e-7, (5, 200, 20): 7.9e-7}
"""Measured processor seconds of one word, for topics, words of the vocabulary and words of a document."""
NOISE_SECONDS = 1.25e-5
"""Measured processor seconds of one value of noise."""


@pytest.mark.parametrize("shape", WORD_SECONDS)
def test_topics_have_about_a_hundred_times_their_measured_time(shape: tuple[int, int, int]) -> None:
    """A word costs the same for any vocabulary. By the length of an answer, days would be allowed."""
    topics, words, length = shape
    plan, declared = _plan_topics(*shape)
    measured = declared.slots * length * WORD_SECONDS[shape] + 20 * topics * words * NOISE_SECONDS
    assert 60 < (compute_run_limits(plan, declared).seconds - BASE_SECONDS) / measured < 300


def test_a_larger_vocabulary_costs_noise_alone() -> None:
    few, many = (compute_run_limits(*_plan_topics(20, words, 50)).seconds for words in (500, 5000))
    assert many - few == pytest.approx(20 * 20 * 4500 * NOISE_OPERATIONS / OPERATIONS_A_SECOND, rel=1e-3)


def test_more_groups_add_little_to_the_work_on_a_row() -> None:
    """A row is in one group; a limit by the length of the answer would allow a hundred times as much."""

    def compute(groups: int) -> float:
        columns = (*COLUMNS, Column("site", "categorical", categories=tuple(map(str, range(groups)))))
        declared = facts(1_000_000, columns=columns)
        spec, chosen = ModelSpec("logistic-regression", ("age",), "sick"), {"groups": ["site"]}
        request = PlanRequest("dp-groups", 5, spec, chosen, None, 2.0)
        plan = registry.find_method("dp-groups").plan(request, declared)
        noise = plan.answer_length * NOISE_OPERATIONS / OPERATIONS_A_SECOND
        return compute_run_limits(plan, declared).seconds - noise

    assert compute(400) < 120 * compute(4)
    assert compute(400) < 5_000


@pytest.mark.parametrize(("method", "draws"), [("dp-groups", 10), ("dp-groups", 200), ("dp-psvi", 1000)])
def test_one_person_of_many_rows_fits_into_the_memory(method: str, draws: int) -> None:
    """W14, W15: the request and the declaration alone decide the memory of a query, so no limit may be below."""
    columns = (*COLUMNS, Column("person", "integer", 0, 9), Column("site", "categorical", categories=SITES))
    declared = facts(1, columns=columns, unit={"kind": "column", "column": "person", "max_rows": 30_000})
    chosen: dict[str, Any] = {"posterior_draws": draws} | ({"groups": ["site"]} if method == "dp-groups" else {})
    spec, mechanism = ModelSpec("logistic-regression", ("age",), "sick"), Mechanism(2.0, 1.0, 1)
    plan = registry.find_method(method).plan(PlanRequest(method, 5, spec, chosen, mechanism), declared)
    model, theta = make_run_problem(plan, declared).model, np.random.default_rng(0).standard_normal((draws, 2))
    query: Any = GroupPotentialSum(theta, 1.0, len(SITES), 0.6) if method == "dp-groups" else PotentialSum(theta, 1.0)
    table = np.ones((30_000, model.row_width), dtype=np.float32)
    tracemalloc.start()
    query.sum(model, table, np.ones(30_000, dtype=np.bool_), 30_000)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert 1 << 26 < peak < compute_run_limits(plan, declared).memory_bytes - BASE_BYTES
