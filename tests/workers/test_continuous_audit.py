"""The continuous audit in a worker: its share of time, its place between tasks, and its power on real code (W12)."""

import math
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import numpy as np
import pytest
from sqlalchemy import select, update
from structlog.testing import capture_logs

from app.continuous_audit.alarm import check
from app.continuous_audit.models import AuditState
from app.db import Database
from app.errors import PrivacyAlarm
from app.inference.audit import batches
from app.inference.audit.batches import CANARIES, Batch, draw_batch, draw_canaries, find_stream, list_weights
from app.inference.audit.mechanism import Sample
from app.inference.audit.subjects import list_subjects
from app.inference.core.model import Array64
from app.inference.core.query import Integers
from app.inference.private_zone.mechanisms import DiscreteGaussian
from app.privacy.audit.continuous import ALTERNATIVES, CERTAIN, compute_log_ratios
from app.privacy.audit.laws import AnswerLaw
from app.privacy.audit.thresholds import compute_log_threshold
from tests.factories.worker import House
from workers import continuous_audit
from workers.computation import make_oracle
from workers.continuous_audit import FIRST_SECONDS, Auditor, Governor

CHANCE = math.log(1e7)
"""Log-evidence that a true claim reaches with probability 10**-7."""


class Clock:
    """A clock that tests move."""

    def __init__(self) -> None:
        self.seconds = 1000.0

    def __call__(self) -> float:
        return self.seconds


def draw(number: int) -> Batch:
    return draw_batch(number, make_oracle)


def read(database: Database) -> AuditState:
    with database.read() as session:
        return session.scalars(select(AuditState)).one()


def make_auditor(database: Database, clock: Clock, share: float = 1.0) -> tuple[Auditor, threading.Lock]:
    turn = threading.Lock()
    return Auditor(database, Governor(share, clock), turn), turn


@pytest.mark.parametrize("share", [0.01, 0.2])
def test_batches_take_at_most_their_share_of_the_time(share: float) -> None:
    """With durations from a millisecond to ten seconds, by a fake clock: at each start, all earlier ones together."""
    clock, rng, used = Clock(), np.random.default_rng(1), 0.0
    start, governor = clock.seconds, Governor(share, clock)
    for _ in range(500):
        clock.seconds += governor.compute_wait()
        assert used <= share * (clock.seconds - start)
        seconds = 10 ** rng.uniform(-3, 1)
        with governor.measure():
            clock.seconds += seconds
        used += seconds
    assert used > 0.5 * share * (clock.seconds - start)  # the share is used


def test_a_failed_batch_counts_too() -> None:
    clock = Clock()
    governor = Governor(0.01, clock)

    def fail() -> None:
        with governor.measure():
            clock.seconds += 2.0
            raise KeyError

    with pytest.raises(KeyError):
        fail()
    assert governor.compute_wait() == pytest.approx(198.0)


def test_a_new_process_waits_before_its_first_batch() -> None:
    assert Governor(0.01, Clock()).compute_wait() == FIRST_SECONDS


@pytest.mark.parametrize("share", [0.0, -0.1, 1.1, math.nan])
def test_impossible_shares_are_refused(share: float) -> None:
    with pytest.raises(ValueError, match="share"):
        Governor(share)


def test_no_batch_is_drawn_early_or_during_a_task(database: Database) -> None:
    clock = Clock()
    auditor, turn = make_auditor(database, clock)
    auditor.step()
    assert read(database).batches == 0
    clock.seconds += FIRST_SECONDS
    with turn:
        auditor.step()
        assert read(database).batches == 0
    auditor.step()
    assert read(database).batches == 1
    assert not turn.locked()


def test_a_sweep_notices_damaged_evidence(house: House) -> None:
    """W12: runs refuse from then on, although no further batch is drawn."""
    clock = Clock()
    auditor, _ = make_auditor(house.database, clock)
    clock.seconds += FIRST_SECONDS
    auditor.step()
    house.sweeper.sweep()
    assert not read(house.database).damaged
    with house.database.write() as tx:
        tx.execute(update(AuditState).values(capitals={}))
    house.sweeper.sweep()
    with house.database.read() as session, pytest.raises(PrivacyAlarm):
        check(session)


def _run_steps(database: Database, draw: Callable[[int], Batch], count: int) -> AuditState:
    clock = Clock()
    turn = threading.Lock()
    auditor = Auditor(database, Governor(1.0, clock), turn, draw)
    for _ in range(count):
        clock.seconds += 1000
        auditor.step()
        assert not turn.locked()
    return read(database)


def test_an_error_gives_the_ticket_back(database: Database) -> None:
    """The next batch is drawn at once. The failed one is not counted."""
    failing = iter([True, False])

    def draw_or_fail(number: int) -> Batch:
        if next(failing):
            raise MemoryError
        return draw(number)

    with capture_logs() as logs:
        state = _run_steps(database, draw_or_fail, 2)
    assert (state.batches, state.ticket, state.ticket_until) == (1, 2, None)
    named = [(each["stream"], each["kind"]) for each in logs if "failed" in each["event"]]
    assert named == [(find_stream(1), "MemoryError")]


def test_a_query_that_always_fails_stops_no_other_stream(database: Database) -> None:
    """W12: all tickets have different numbers, so all other streams get evidence."""
    broken = find_stream(1)

    def fail_sometimes(number: int) -> Batch:
        if find_stream(number) == broken:
            raise KeyError
        return Batch(AnswerLaw(1.0), Sample(np.zeros(0), np.zeros(0)))

    count = 2 * len(list_subjects())
    state = _run_steps(database, fail_sometimes, count)
    assert state.batches == count - 1
    assert set(state.capitals) == set(list_weights())
    assert max(state.capitals[broken]["bets"]) == -CERTAIN


@pytest.mark.long
def test_errors_that_depend_on_answers_raise_no_alarm(database: Database) -> None:
    """W12: batches of a true claim that would lose capital fail. Without their loss, the alarm would be certain."""
    rng, claim, place = np.random.default_rng(1), AnswerLaw(1.0), ALTERNATIVES.index("noise x 0.98")
    kept: list[float] = []

    def fail_on_losses(_: int) -> Batch:
        answers, present = rng.standard_normal(2400), np.zeros(2400)
        gain = float(compute_log_ratios(claim, answers, present)[place])
        if gain < 0:
            raise ArithmeticError
        kept.append(gain)
        return Batch(claim, Sample(answers, present))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(continuous_audit, "find_stream", lambda _: CANARIES)
        state = _run_steps(database, fail_on_losses, 200)
    assert state.batches == len(kept)
    assert sum(kept) > 2 * compute_log_threshold(0)  # enough for an alarm
    assert state.log_largest < math.log(20)


def test_a_stopped_audit_ends(database: Database) -> None:
    stop = threading.Event()
    stop.set()
    make_auditor(database, Clock())[0].run(stop)


def _run(database: Database, count: int) -> AuditState:
    clock = Clock()
    auditor, _ = make_auditor(database, clock)
    for _ in range(count):
        clock.seconds += 1000
        auditor.step()
    return read(database)


@contextmanager
def scaled_noise(monkeypatch: pytest.MonkeyPatch, factor: float) -> Iterator[None]:
    """Break the source of noise of all runs."""
    whole = DiscreteGaussian.perturb

    def perturb(self: DiscreteGaussian, sums: Integers, scale: float | Array64) -> Integers:
        return whole(self, sums, scale * factor)

    with monkeypatch.context() as patch:
        patch.setattr(DiscreteGaussian, "perturb", perturb)
        yield


@pytest.mark.slow
@pytest.mark.long
def test_the_true_mechanism_raises_no_alarm(database: Database) -> None:
    """W12: every stream, many claims, real code; the evidence reaches the limit with probability 10**-7."""
    count = 2 * len(list_subjects())
    state = _run(database, count)
    assert state.batches == count
    assert set(state.capitals) == set(list_weights())
    assert state.log_largest < CHANCE


@pytest.mark.slow
def test_a_tenth_too_little_noise_raises_the_alarm(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    """W12: in production's source of noise. Four batches of canaries give 97 nats, with a deviation of 13."""
    with scaled_noise(monkeypatch, 0.9):
        state = _run(database, 8)
    assert state.alarmed_at is not None
    assert state.batches <= 8


@pytest.mark.slow
def test_evidence_grows_by_two_percent_too_little_noise(monkeypatch: pytest.MonkeyPatch) -> None:
    """W12: the exact alternative gains 0.97 nats a batch, with a deviation of 1.4; here a sum over 40 batches.

    The true source loses as much, so the sums are 39 and -39, with deviations of 9.
    """
    sums = {}
    for factor in (0.98, 1.0):
        with scaled_noise(monkeypatch, factor):
            drawn = [draw_canaries(AnswerLaw(1.0), make_oracle) for _ in range(40)]
        gains = [compute_log_ratios(each.claim, each.sample.answers, each.sample.present) for each in drawn]
        sums[factor] = float(np.sum(gains, axis=0)[ALTERNATIVES.index("noise x 0.98")])
    assert sums[0.98] - sums[1.0] > 0


def test_batches_come_from_the_oracle_of_runs() -> None:
    """W2: the worker's function that makes oracles for jobs, and no other."""
    assert vars(continuous_audit)["make_oracle"] is make_oracle
    asked: list[int] = []

    def counting(*arguments: object) -> object:
        asked.append(1)
        return make_oracle(*arguments)  # type: ignore[arg-type]

    draw_batch(0, counting)  # type: ignore[arg-type]
    draw_batch(1, counting)  # type: ignore[arg-type]
    assert len(asked) >= 2


def test_turns_reach_every_stream_claim_and_size_of_units(monkeypatch: pytest.MonkeyPatch) -> None:
    """W12: which batch is next follows from its number alone."""
    seen: set[object] = set()
    monkeypatch.setattr(batches, "draw_canaries", lambda claim, _: seen.add(claim))
    monkeypatch.setattr(batches, "_draw_subject", lambda subject, *setting: seen.add((subject.name, setting[:3])))
    count = len(list_subjects()) * len(batches._SETTINGS)
    for number in range(2 * count):
        draw_batch(number, make_oracle)
    assert len(seen) == count + len(batches._CLAIMS)


def test_the_stream_of_a_batch_follows_from_its_number(monkeypatch: pytest.MonkeyPatch) -> None:
    """A batch that fails counts against this stream."""
    monkeypatch.setattr(batches, "draw_canaries", lambda *_: CANARIES)
    monkeypatch.setattr(batches, "_draw_subject", lambda subject, *_: subject.name)
    numbers = range(4 * len(list_subjects()))
    drawn: list[object] = [draw_batch(number, make_oracle) for number in numbers]
    assert drawn == [find_stream(number) for number in numbers]


def test_claims_have_the_exact_contribution() -> None:
    """W12: clipping makes contributions slightly shorter; with 1 instead, a true claim would look false after years."""
    shift = draw_canaries(AnswerLaw(1.0), make_oracle).claim.shift
    assert 0.999 < shift < 1
    assert sum(list_weights().values()) == pytest.approx(1)
