"""Mutants of the accountant, the ledger, the life of jobs, and the wall."""

from typing import Final

from tools.mutants.mutant import Mutant

ZONE: Final = "app/inference/private_zone/"
TESTS: Final = "tests/inference/private_zone/"

ACCOUNTING: Final = (
    Mutant(
        "each order may use the whole of delta",
        "W9",
        "app/privacy/filter.py",
        (("bound_nats(epsilon, delta, order, math.log(weight))", "bound_nats(epsilon, delta, order, 0.0)"),),
        "corevaultd audit --section filter",
    ),
    Mutant(
        "weights may add up to more than one",
        "W9",
        "app/privacy/filter.py",
        (("if sum(map(Fraction, self.weights)) > 1:", "if sum(map(Fraction, self.weights)) > 2:"),),
        "tests/privacy_core/test_filter.py::test_weights_that_make_no_union_bound_are_refused",
    ),
    Mutant(
        "the ledger takes the least epsilon over orders",
        "W9",
        "app/privacy/filter.py",
        (
            (
                (
                    "        pairs = list(zip(amounts, self.bounds(epsilon), strict=True))\n"
                    "        return any(amount <= bound and amount < INFINITE for amount, bound in pairs)"
                ),
                (
                    "        from app.privacy.accounting import compute_epsilon\n\n"
                    "        limit = self.epsilon if epsilon is None else epsilon\n"
                    "        return compute_epsilon(amounts, self.delta, self.orders) <= limit"
                ),
            ),
        ),
        "corevaultd audit --section filter",
    ),
    Mutant(
        "a charge is rounded down",
        "W9",
        "app/privacy/accounting.py",
        (("units = -(-(each * count << UNIT_BITS)", "units = ((each * count << UNIT_BITS)"),),
        "tests/privacy_core/test_accounting.py::test_a_gaussian_costs_its_closed_form_rounded_up",
    ),
)

LEDGER: Final = (
    *(
        Mutant(
            f"the hash of an entry leaves out {column}",
            "W11",
            "app/ledger/integrity/chain.py",
            ((text, ""),),
            "tests/ledger/test_ledger_chain.py::test_an_entrys_hash_covers_every_column",
        )
        for column, text in (
            ("job_id", '        "job_id": event.job_id,\n'),
            ("account_id", '        "account_id": account_id,\n'),
            ("kind", '        "kind": event.kind,\n'),
        )
    ),
    Mutant(
        "the hash of a checkpoint leaves out the balance",
        "W11",
        "app/ledger/integrity/checkpoints.py",
        (('        "balance_hash": row.balance_hash,\n', ""),),
        "tests/ledger/test_ledger_chain.py::test_a_checkpoint_with_an_altered_column_fails",
    ),
    Mutant(
        "an opened job can be voided",
        "W10",
        "app/ledger/entries/transfers.py",
        (
            ("if row.state not in {RESERVED, VOIDED}:", "if row.state not in {RESERVED, VOIDED, OPENED}:"),
            ("if locked is not None and row.state == RESERVED:", "if locked is not None and row.state != VOIDED:"),
        ),
        "tests/ledger/test_ledger_transfers.py::test_an_opened_job_is_never_refunded",
    ),
    Mutant(
        "a job can be settled twice",
        "W8",
        "app/ledger/entries/transfers.py",
        (
            (
                '!= OPENED:\n        raise StateConflict("Only an opened job can be settled, and only once.")\n',
                "== SETTLED:\n        return\n",
            ),
        ),
        "tests/ledger/test_ledger_transfers.py::test_a_job_is_settled_once",
    ),
    Mutant(
        "the run is not compared with the reservation",
        "W8",
        "app/ledger/entries/transfers.py",
        (("if tuple(planned) != _events(body):", "if not planned:"),),
        "tests/ledger/test_ledger_transfers.py::test_a_plan_that_is_not_the_reserved_one_is_not_opened",
    ),
    Mutant(
        "attempts are not counted",
        "W10",
        "app/jobs/lifecycle.py",
        (("attempts=Job.attempts + 1,", "attempts=Job.attempts,"),),
        "tests/jobs/test_attempts.py::test_job_whose_worker_dies_every_time_ends",
    ),
    Mutant(
        "a helper answers without an opened reservation",
        "W8",
        "workers/split_queries/helper.py",
        (("if not self._ledger.is_opened(", "if not self._ledger and not self._ledger.is_opened("),),
        "tests/workers/split_queries/test_helper_reservations.py::test_helper_reads_rows_of_an_opened_reservation_only",
    ),
)

WALL: Final = (
    Mutant(
        "blocks without a present row are skipped",
        "W14",
        ZONE + "queries/blocks.py",
        (
            (
                "        there = present[start : start + size]\n",
                "        there = present[start : start + size]\n        if not there.any():\n            continue\n",
            ),
        ),
        TESTS + "test_work_on_rows.py::test_steps_and_shapes_do_not_depend_on_presence",
    ),
    Mutant(
        "only present rows are worked on",
        "W14",
        ZONE + "queries/blocks.py",
        (
            (
                "clip_to_grid(sums, units, clip)",
                "clip_to_grid(sums[units], units[units], clip)",
            ),
        ),
        TESTS + "test_work_on_rows.py::test_steps_and_shapes_do_not_depend_on_presence",
    ),
    Mutant(
        "a log line counts the rows of a group",
        "W3",
        "workers/enclave/table.py",
        (
            (
                "            self._drop_behind.drop(ranges[0][0], ranges[-1][1])\n",
                (
                    "            self._drop_behind.drop(ranges[0][0], ranges[-1][1])\n"
                    "            import structlog\n\n"
                    "            structlog.get_logger().info('group', rows=int(self._decoded[1][PRESENT].sum()))\n"
                ),
            ),
        ),
        "tests/workers/test_telemetry.py::test_logs_and_spans_do_not_depend_on_rows",
    ),
    Mutant(
        "a span counts the present rows",
        "W3",
        "workers/enclave/table.py",
        (
            (
                "            self._drop_behind.drop(ranges[0][0], ranges[-1][1])\n",
                (
                    "            self._drop_behind.drop(ranges[0][0], ranges[-1][1])\n"
                    "            from opentelemetry import trace\n\n"
                    "            trace.get_current_span().set_attribute('n', int(self._decoded[1][PRESENT].sum()))\n"
                ),
            ),
        ),
        "tests/workers/test_telemetry.py::test_logs_and_spans_do_not_depend_on_rows",
    ),
)
