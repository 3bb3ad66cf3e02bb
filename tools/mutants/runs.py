"""Mutants of runs: charges and releases of jobs, attempts, faults, and queries in parts."""

from typing import Final

from tools.mutants.mutant import Mutant

_TASK: Final = "workers/run_task.py"
_LIFECYCLE: Final = "app/jobs/lifecycle.py"
_RUNS: Final = "tests/workers/test_run_task.py::"

CHARGES: Final = (
    Mutant(
        "a failed run gives its charge back",
        "W10",
        _LIFECYCLE,
        (("            self._ledger.settle(tx, job_id, ())\n", "            self._ledger.void(tx, job_id)\n"),),
        _RUNS + "test_exception_ends_and_charges_the_job_and_is_not_logged",
    ),
    Mutant(
        "a failed run is repeated under its charge",
        "W10",
        _LIFECYCLE,
        (
            (
                'return self._end(tx, job, *_fence(claim), status="failed", error_code=code)',
                "return self._requeue(tx, job.id, *_fence(claim))",
            ),
        ),
        _RUNS + "test_exception_ends_and_charges_the_job_and_is_not_logged",
    ),
    Mutant(
        "a cancelled job keeps its reservation",
        "W10",
        _LIFECYCLE,
        (
            (
                "        if self._ledger.is_reserved(tx, job.id):\n            self._close_reservation(tx, job.id)\n",
                (
                    '        if self._ledger.is_reserved(tx, job.id) and values["status"] != "cancelled":\n'
                    "            self._close_reservation(tx, job.id)\n"
                ),
            ),
        ),
        "tests/jobs/test_jobs_http.py::test_queued_job_is_cancelled_at_once_and_not_charged",
    ),
    Mutant(
        "the token of an attempt is not looked at",
        "W10",
        _LIFECYCLE,
        (
            (
                'return Job.status == "running", Job.fencing_token == claim.fencing_token',
                'return Job.status == "running", Job.fencing_token >= claim.fencing_token',
            ),
        ),
        _RUNS + "test_attempt_without_its_lease_leaves_the_job_to_the_next_one",
    ),
    Mutant(
        "a job without a cost reads private rows",
        "W8",
        "workers/assignments.py",
        (('    if is_accounted(job) != (dataset.sensitivity == "private"):\n', "    if False:\n"),),
        "tests/workers/test_altered_jobs.py::test_job_of_a_public_table_reads_no_private_row",
    ),
    Mutant(
        "the certificate states the account before the settlement",
        "W11",
        _TASK,
        (
            (
                "            hold = self._lifecycle.settle(tx, claim, executed)\n",
                (
                    "            standing = self._read_standing(tx, assignment) if assignment.is_accounted else None\n"
                    "            hold = self._lifecycle.settle(tx, claim, executed)\n"
                ),
            ),
            (
                (
                    "                standing = self._read_standing(tx, assignment) if assignment.is_accounted else None\n"
                    "                release ="
                ),
                "                release =",
            ),
        ),
        _RUNS + "test_the_certificate_states_what_ran_and_verifies",
    ),
    Mutant(
        "a cancelled run keeps its points",
        "W8",
        _TASK,
        (
            (
                "                self._lifecycle.end_cancelled(tx, claim)\n        self._discard_unpublished(claim)\n",
                "                self._lifecycle.end_cancelled(tx, claim)\n",
            ),
        ),
        _RUNS + "test_job_cancelled_during_its_run_is_charged_without_a_release",
    ),
    Mutant(
        "rows are opened without a checkpoint",
        "W11",
        _TASK,
        (
            (
                "                self._ledger.checkpoint(tx, assignment.run.dataset_id)\n",
                "                self._ledger.state(tx, claim.job_id)\n",
            ),
        ),
        _RUNS + "test_checkpoints_are_written_before_rows_are_read_and_at_publication",
    ),
)

FAULTS: Final = (
    Mutant(
        "a fault on rows freezes nothing",
        "W14",
        _TASK,
        (("        return Cause.RUN\n", "        return None\n"),),
        _RUNS + "test_fault_on_rows_freezes_the_account",
    ),
    Mutant(
        "a fault on rows has a separate code",
        "W14",
        _TASK,
        (
            (
                "            self._lifecycle.fail(tx, claim, JobError.RUN_FAILED)\n            job =",
                (
                    "            self._lifecycle.fail(tx, claim, JobError.INTERRUPTED if cause else JobError.RUN_FAILED)\n"
                    "            job ="
                ),
            ),
        ),
        _RUNS + "test_exception_ends_and_charges_the_job_and_is_not_logged",
    ),
    Mutant(
        "a log line quotes a fault on rows",
        "W3",
        _TASK,
        (
            (
                'log.error("job failed", code=str(JobError.RUN_FAILED))\n        else:',
                'log.error("job failed", code=str(JobError.RUN_FAILED), why=repr(error.__context__ or error))\n        else:',
            ),
        ),
        _RUNS + "test_exception_ends_and_charges_the_job_and_is_not_logged",
    ),
    Mutant(
        "a diagnostic counts the rows",
        "W3",
        "workers/computation.py",
        (
            (
                "    return released, oracle.executed\n",
                (
                    "    import dataclasses\n\n"
                    "    import numpy as np\n\n"
                    '    count = int(rows.gather(np.arange(rows.slots))["present"].sum())\n'
                    "    stated = {**released.diagnostics, 'rows': count}\n"
                    "    return dataclasses.replace(released, diagnostics=stated), oracle.executed\n"
                ),
            ),
        ),
        "tests/workers/test_noninterference.py::test_outputs_of_a_run_do_not_reveal_its_content[vips-gaussian]",
    ),
)

PARTS: Final = (
    Mutant(
        "a part of a query is added twice",
        "W5",
        "workers/split_queries/coordinator.py",
        (("np.sum(list(sums.values()), axis=0)", "np.sum([sums[0], *sums.values()], axis=0)"),),
        "tests/workers/split_queries/test_partition_sums.py::test_w5_each_part_is_added_exactly_once",
    ),
    Mutant(
        "partial sums are sealed under one key",
        "W5",
        "workers/split_queries/mailbox.py",
        (("field(default_factory=generate_key, repr=False)", "field(default=bytes(32), repr=False)"),),
        "tests/workers/split_queries/test_partition_sums.py::test_w5_each_part_is_added_exactly_once",
    ),
)
