"""Mutants of changed limits, of identical uploads, and of the high-water mark."""

from typing import Final

from tools.mutants.mutant import Mutant

_LIMITS: Final = "tests/ledger/test_ledger_limits.py::"
_MARKS: Final = "tests/ledger/test_ledger_high_water_mark.py::"
_CHECKPOINTS: Final = "app/ledger/integrity/checkpoints.py"

LIMITS: Final = (
    Mutant(
        "a new tranche may use the delta of the whole account",
        "W9",
        "app/ledger/account/limits.py",
        (
            (
                "make_design_pot(epsilon - before, delta,",
                "make_design_pot(epsilon - before, total_delta,",
            ),
        ),
        _LIMITS + "test_a_higher_limit_opens_a_tranche",
    ),
    Mutant(
        "a limit rises above all tranches without one for the added part",
        "W9",
        "app/ledger/account/limits.py",
        (("if epsilon <= balance.guaranteed_epsilon * (1 + _ROUNDING):", "if delta is None:"),),
        _LIMITS + "test_only_the_part_above_the_highest_limit_opens_a_tranche",
    ),
    Mutant(
        "a tranche is opened for a limit that the account has had",
        "W9",
        "app/ledger/account/limits.py",
        (
            ("if epsilon <= balance.guaranteed_epsilon * (1 + _ROUNDING):", "if delta is None:"),
            (
                "make_design_pot(epsilon - before,",
                "make_design_pot(epsilon - balance.total.epsilon,",
            ),
        ),
        _LIMITS + "test_the_guarantee_is_the_highest_limit_in_every_sequence",
    ),
    Mutant(
        "a freeze ends without a reason",
        "W11",
        "app/ledger/account/freezing.py",
        (("    if not reason.strip():\n", "    if False:\n"),),
        "tests/ledger/test_ledger_unfreeze.py::test_a_freeze_does_not_end_without_a_reason",
    ),
    Mutant(
        "a limit may fall below the spent cost",
        "W9",
        "app/ledger/account/limits.py",
        (("    if epsilon < used:\n", "    if False:\n"),),
        _LIMITS + "test_a_limit_never_falls_below_what_is_spent_and_reserved",
    ),
    Mutant(
        "certificates state the present limit, not the highest",
        "W9",
        "app/ledger/views.py",
        (("Guarantee(balance.guaranteed_epsilon,", "Guarantee(balance.total.epsilon,"),),
        _LIMITS + "test_a_lower_limit_only_stops_spending",
    ),
    Mutant(
        "an identical file gets a second budget",
        "W9",
        "app/datasets/ingestion.py",
        (("    if private and not ledger.claim_fingerprint(", "    if not private and not ledger.claim_fingerprint("),),
        "tests/datasets/test_ingestion.py::test_identical_file_in_a_second_population_is_rejected",
    ),
    Mutant(
        "a fingerprint belongs to every account",
        "W9",
        "app/ledger/account/fingerprints.py",
        (("return holder in {None, account.id}", "return True"),),
        "tests/datasets/test_ingestion.py::test_identical_file_in_a_second_population_is_rejected",
    ),
)

MARKS: Final = (
    Mutant(
        "every second checkpoint has no mark",
        "W11",
        _CHECKPOINTS,
        (
            (
                "    if context.mark is not None:\n        tx.after_commit(",
                "    if context.mark is not None and row.sequence % 2:\n        tx.after_commit(",
            ),
        ),
        _MARKS + "test_a_restored_backup_is_read_only_until_it_is_charged",
    ),
    Mutant(
        "a mark that cannot be written is no error",
        "W11",
        _CHECKPOINTS,
        (("describe_balance(account)), vital=vital)", "describe_balance(account)), vital=False)"),),
        _MARKS + "test_a_checkpoint_without_a_mark_blocks_its_caller",
    ),
    Mutant(
        "the mark is written before the commit",
        "W11",
        _CHECKPOINTS,
        (
            (
                "tx.after_commit(partial(context.mark.advance, row, describe_balance(account)), vital=vital)",
                "context.mark.advance(row, describe_balance(account))",
            ),
        ),
        _MARKS + "test_a_checkpoint_without_a_mark_blocks_its_caller",
    ),
    Mutant(
        "opening does not look at the mark",
        "W11",
        "app/ledger/entries/transfers.py",
        (("        context.check_mark(tx)\n", ""),),
        _MARKS + "test_a_job_that_ran_is_not_opened_again_after_a_restore",
    ),
    Mutant(
        "a checkpoint does not look at the mark",
        "W11",
        _CHECKPOINTS,
        (("        locked.context.check_mark(tx)\n", "        pass\n"),),
        _MARKS + "test_a_running_service_detects_a_swapped_database",
    ),
)
