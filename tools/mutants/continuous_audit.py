"""Mutants of the continuous audit: evidence, alarm, tickets and resets."""

from typing import Final

from tools.mutants.mutant import Mutant

_STATE: Final = "app/continuous_audit/"
_ALARM: Final = "tests/continuous_audit/test_alarm.py::"
_WORKER: Final = "tests/workers/test_continuous_audit.py::"

CONTINUOUS_AUDIT: Final = (
    Mutant(
        "a failed batch of the audit loses no bets",
        "W12",
        _STATE + "service.py",
        (("weights, Capital.forfeit)", "weights, lambda capital: capital)"),),
        _WORKER + "test_errors_that_depend_on_answers_raise_no_alarm",
    ),
    Mutant(
        "a failed batch of the audit counts as a batch",
        "W12",
        _STATE + "service.py",
        (
            (
                "    _change_capital(tx, ticket, stream, weights, Capital.forfeit)\n",
                (
                    "    state = _change_capital(tx, ticket, stream, weights, Capital.forfeit)\n"
                    "    if state is not None:\n"
                    "        state.batches += 1\n"
                    "        state.last_at = read_time(tx)\n"
                ),
            ),
        ),
        _WORKER + "test_a_query_that_always_fails_stops_no_other_stream",
    ),
    Mutant(
        "the threshold of the audit is not looked at",
        "W12",
        _STATE + "service.py",
        (("    if state.log_largest >= compute_log_threshold(state.resets):\n", "    if False:\n"),),
        _ALARM + "test_two_percent_too_little_noise_raises_the_alarm",
    ),
    Mutant(
        "the largest evidence is that of the newest batch",
        "W12",
        _STATE + "service.py",
        (("state.log_largest = max(state.log_largest, state.log_evidence)", "state.log_largest = state.log_evidence"),),
        _ALARM + "test_the_largest_evidence_does_not_fall",
    ),
    Mutant(
        "a worker without the newest ticket records its batch",
        "W12",
        _STATE + "service.py",
        (("state.ticket != ticket or state.ticket_until is None", "state.ticket_until is None"),),
        _ALARM + "test_one_batch_is_drawn_at_a_time",
    ),
    Mutant(
        "evidence is lost with a change of the design",
        "W12",
        _STATE + "bookkeeping.py",
        (("return {}, state.log_evidence", "return {}, 0.0"),),
        _ALARM + "test_another_design_keeps_the_evidence",
    ),
    Mutant(
        "capitals are not compared with the evidence",
        "W12",
        _STATE + "bookkeeping.py",
        (("    if not math.isclose(", "    if False and not math.isclose("),),
        _ALARM + "test_workers_find_capitals_that_contradict_the_evidence",
    ),
    Mutant(
        "a removed time of the alarm ends it",
        "W12",
        _STATE + "alarm.py",
        (
            (
                "return state.alarmed_at is not None or state.log_largest >= compute_log_threshold(state.resets)",
                "return state.alarmed_at is not None",
            ),
        ),
        _ALARM + "test_the_largest_evidence_alone_is_an_alarm",
    ),
    Mutant(
        "a damaged state counts as quiet",
        "W12",
        _STATE + "alarm.py",
        (("    if state is None:\n        raise PrivacyAlarm(_DAMAGED)\n", "    if state is None:\n        return\n"),),
        _ALARM + "test_a_damaged_state_refuses",
    ),
    Mutant(
        "opening does not look at the alarm",
        "W12",
        "app/jobs/lifecycle.py",
        (("            alarm.check(tx)\n", ""),),
        _ALARM + "test_a_queued_job_is_not_opened",
    ),
    Mutant(
        "submission does not look at the alarm",
        "W12",
        "app/jobs/service.py",
        (("        alarm.check(tx)\n", ""),),
        _ALARM + "test_new_jobs_are_refused_with_a_stable_code",
    ),
    Mutant(
        "a quiet audit can be reset",
        "W12",
        _STATE + "resets.py",
        (("    if not (status.has_alarm or status.is_damaged):\n", "    if False:\n"),),
        _ALARM + "test_a_quiet_audit_cannot_be_reset",
    ),
    Mutant(
        "a reset keeps the threshold",
        "W12",
        _STATE + "resets.py",
        (("tx.add(make_state(resets=earlier + 1))", "tx.add(make_state())"),),
        _ALARM + "test_resets_double_the_threshold_and_are_in_the_audit_log",
    ),
    Mutant(
        "the audit log has no reason of a reset",
        "W12",
        _STATE + "resets.py",
        (("record_command(tx, RESET, reason=reason)", "record_command(tx, RESET)"),),
        _ALARM + "test_resets_double_the_threshold_and_are_in_the_audit_log",
    ),
    Mutant(
        "a reset needs no reason",
        "W12",
        _STATE + "resets.py",
        (("    if not reason.strip():\n", "    if False:\n"),),
        _ALARM + "test_a_reset_without_a_reason_is_refused",
    ),
    Mutant(
        "sweeps do not look at the evidence",
        "W12",
        "workers/sweeper.py",
        (('            ("audit", self._check_audit),\n', ""),),
        _WORKER + "test_a_sweep_notices_damaged_evidence",
    ),
    Mutant(
        "the audit has a separate oracle",
        "W2",
        "workers/continuous_audit.py",
        (
            (
                "from workers.computation import make_oracle\n",
                "from workers.computation import make_oracle as of_runs\n\nmake_oracle = lambda *given: of_runs(*given)\n",
            ),
        ),
        _WORKER + "test_batches_come_from_the_oracle_of_runs",
    ),
)
