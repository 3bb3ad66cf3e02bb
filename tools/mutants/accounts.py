"""Mutants of prices, admission, chains, sealed objects and repeated requests."""

from typing import Final

from tools.mutants.mutant import Mutant

ACCOUNTS: Final = (
    Mutant(
        "a stated cost is 0.1 % too low",
        "W9",
        "app/privacy/accounting.py",
        (
            (
                "return max(0.0, math.nextafter(min(converted, default=math.inf), math.inf))",
                "return max(0.0, 0.999 * min(converted, default=math.inf))",
            ),
        ),
        "tests/benchmarks/test_accountants.py::test_w9_the_ledger_is_never_below_the_stored_prices",
    ),
    Mutant(
        "prices leave out the errors of the library",
        "W9",
        "app/privacy/accounting.py",
        (("(_ABSOLUTE_PARTS // _RELATIVE_PARTS) + denominator", "(_ABSOLUTE_PARTS // _RELATIVE_PARTS)"),),
        "tests/privacy_core/test_accounting.py::test_a_charge_is_the_divergence_plus_its_error_rounded_up",
    ),
    Mutant(
        "the surcharge for discrete noise is a hundredth",
        "W9",
        "app/privacy/accounting.py",
        (("SURCHARGE = 1.0 / _ABSOLUTE_PARTS", "SURCHARGE = 0.01 / _ABSOLUTE_PARTS"),),
        "tests/privacy_core/test_discretisation.py::test_the_surcharge_covers_the_longest_answer_and_the_library",
    ),
    Mutant(
        "a high sampling rate is priced as a lower one",
        "W8",
        "app/privacy/accounting.py",
        (("max(event.sampling_rate, _LEAST_RATE)", "min(max(event.sampling_rate, _LEAST_RATE), 0.25)"),),
        "tests/privacy_core/test_accounting.py::test_no_stated_cost_is_below_the_librarys",
    ),
    Mutant(
        "little noise is priced as more noise",
        "W9",
        "app/privacy/accounting.py",
        (
            (
                "return 1.0, min(event.noise_multiplier, MOST_NOISE)",
                "return 1.0, min(max(event.noise_multiplier, 0.5), MOST_NOISE)",
            ),
        ),
        "tests/privacy_core/test_accounting.py::test_a_gaussian_costs_its_closed_form_rounded_up",
    ),
    Mutant(
        "an event without a guarantee has the price zero",
        "W9",
        "app/privacy/events.py",
        (('            raise UnknownEvent("this event has no price")\n', "            continue\n"),),
        "tests/privacy_core/test_accounting.py::test_an_event_without_a_price_is_refused",
    ),
    Mutant(
        "calibration accepts one percent over the target",
        "W8",
        "app/privacy/calibration.py",
        (("search = _Search(plan, target, delta)", "search = _Search(plan, 1.01 * target, delta)"),),
        "tests/privacy_core/test_calibration.py::test_the_noise_is_the_least_that_does_not_overspend",
    ),
    Mutant(
        "spent charges do not count",
        "W9",
        "app/ledger/entries/meter.py",
        (("return tuple(map(add, self.spent, self.reserved))", "return self.reserved"),),
        "tests/ledger/test_ledger_limits.py::test_a_lower_limit_only_stops_spending",
    ),
    Mutant(
        "reserved charges do not count",
        "W9",
        "app/ledger/entries/meter.py",
        (("return tuple(map(add, self.spent, self.reserved))", "return self.spent"),),
        "tests/ledger/test_ledger_allocations.py::test_a_spent_allocation_stops_only_its_caller",
    ),
    Mutant(
        "an opened job gives its charge back",
        "W9",
        "app/ledger/entries/balance.py",
        (("OPENED: (1, -1)", "OPENED: (0, -1)"),),
        "tests/ledger/test_ledger_transfers.py::test_a_job_goes_from_reserved_to_settled",
    ),
    Mutant(
        "delta may be one in the number of slots",
        "W9",
        "app/ledger/account/opening.py",
        (("LEAST_DELTA <= delta <= 1 / (10 * slots)", "LEAST_DELTA <= delta <= 1 / slots"),),
        "tests/ledger/test_ledger_accounts.py::test_a_delta_out_of_range_is_refused",
    ),
    Mutant(
        "the cap of a dataset is not charged",
        "W9",
        "app/ledger/entries/balance.py",
        (
            (
                "share = replace(share, cap=share.cap.move(pinned.cap_amounts, spent=spent, reserved=reserved))",
                "share = replace(share, cap=share.cap)",
            ),
        ),
        "tests/ledger/test_ledger_accounts.py::test_a_cap_binds_its_own_dataset_only",
    ),
    Mutant(
        "the allocation of a caller does not bind",
        "W9",
        "app/ledger/entries/admission.py",
        (
            (
                "counts[Obstacle.ALLOCATION] = allocation.meter.room(priced.caller_amounts)",
                "counts[Obstacle.ALLOCATION] = max(1, allocation.meter.room(priced.caller_amounts))",
            ),
        ),
        "tests/ledger/test_ledger_allocations.py::test_a_spent_allocation_stops_only_its_caller",
    ),
    Mutant(
        "every job goes to the first tranche",
        "W9",
        "app/ledger/entries/admission.py",
        (("chosen = next(index for index, room in enumerate(rooms) if room > 0)", "chosen = 0"),),
        "tests/ledger/test_ledger_limits.py::test_a_job_goes_to_the_first_tranche_that_has_room",
    ),
    Mutant(
        "the limit of the whole account does not bind",
        "W9",
        "app/ledger/entries/admission.py",
        (("min(sum(rooms), balance.total.meter.room(priced.amounts))", "sum(rooms)"),),
        "tests/ledger/test_ledger_limits.py::test_a_lower_limit_only_stops_spending",
    ),
    Mutant(
        "more events of a kind may run than were reserved",
        "W8",
        "app/ledger/entries/transfers.py",
        ((" and event == planned_event and count <= planned_count", " and event == planned_event"),),
        "tests/ledger/test_ledger_transfers.py::test_more_than_was_reserved_freezes_the_account",
    ),
)

CHAINS: Final = (
    Mutant(
        "the full audit starts at the snapshot",
        "W11",
        "app/ledger/integrity/verification.py",
        (
            (
                "        snapshots.verify_account(session, signer, account)\n",
                "        snapshots.verify_account(session, signer, account)\n        return True\n",
            ),
        ),
        "tests/ledger/test_ledger_tampering.py::test_a_history_rewritten_with_the_key_is_detected",
    ),
    Mutant(
        "the cached balance is trusted",
        "W11",
        "app/ledger/integrity/snapshots.py",
        (("if stored != account.stored or not newest", "if not newest"),),
        "tests/ledger/test_ledger_tampering.py::test_a_cached_amount_is_not_trusted",
    ),
    Mutant(
        "entries are replayed without their hashes",
        "W11",
        "app/ledger/integrity/chain.py",
        (
            (
                "if entry.sequence != head.sequence + 1 or not head.is_continued_by(*row, _content_of(entry)):",
                "if entry.sequence != head.sequence + 1:",
            ),
        ),
        "tests/ledger/test_ledger_tampering.py::test_an_edit_of_any_column_is_detected",
    ),
    Mutant(
        "a mark is compared by its sequence alone",
        "W11",
        "app/ledger/integrity/high_water_mark.py",
        (
            (
                "exists().where(Checkpoint.sequence == name.sequence, Checkpoint.checkpoint_hash == name.digest)",
                "exists().where(Checkpoint.sequence == name.sequence)",
            ),
        ),
        "tests/ledger/test_ledger_high_water_mark.py::test_another_history_of_the_same_length_is_detected",
    ),
    Mutant(
        "the hash of an entry leaves out at",
        "W11",
        "app/ledger/integrity/chain.py",
        (('        "at": format_instant(at),\n', ""),),
        "tests/ledger/test_ledger_chain.py::test_an_entrys_hash_covers_every_column",
    ),
    Mutant(
        "the hash of an entry leaves out dataset_id",
        "W11",
        "app/ledger/integrity/chain.py",
        (('        "dataset_id": event.dataset_id,\n', ""),),
        "tests/ledger/test_ledger_chain.py::test_an_entrys_hash_covers_every_column",
    ),
    Mutant(
        "the hash of an entry leaves out epsilon_after",
        "W11",
        "app/ledger/integrity/chain.py",
        (('        "epsilon_after": epsilon_after,\n', ""),),
        "tests/ledger/test_ledger_chain.py::test_an_entrys_hash_covers_every_column",
    ),
)

VAULT: Final = (
    Mutant(
        "stored tables are compressed",
        "W3",
        "workers/enclave/table_writer.py",
        (('compression="none"', 'compression="zstd"'),),
        "tests/enclave/test_stored_table.py::test_w3_size_follows_from_schema_and_slots_alone",
    ),
    Mutant(
        "stored tables have dictionaries",
        "W3",
        "workers/enclave/table_writer.py",
        (("use_dictionary=False", "use_dictionary=True"),),
        "tests/enclave/test_stored_table.py::test_w3_size_follows_from_schema_and_slots_alone",
    ),
    Mutant(
        "the footer of a stored table has statistics",
        "W3",
        "workers/enclave/table_writer.py",
        (("write_statistics=False", "write_statistics=True"),),
        "tests/enclave/test_stored_table.py::test_no_statistic_is_in_the_footer",
    ),
    Mutant(
        "a chunk is not bound to being the last one",
        "W1",
        "app/vault/envelope.py",
        (("place = bytes([last]) + index", "place = bytes([0]) + index"),),
        "tests/vault/test_envelope.py::test_chunk_opens_only_with_its_key_and_in_its_place",
    ),
    Mutant(
        "a table is not bound to its version",
        "W1",
        "app/vault/envelope.py",
        (('return f"{dataset_id}|{version}".encode()', 'return f"{dataset_id}".encode()'),),
        "tests/enclave/test_stored_table.py::test_table_does_not_open_for_another_key_dataset_or_version",
    ),
)

HTTP: Final = (
    Mutant(
        "an idempotency key serves another body",
        "W8",
        "app/http/requests/idempotency.py",
        (("if record.body_hash != request.body_hash:", "if False:"),),
        "tests/http/test_idempotency.py::test_another_body_under_the_key_is_a_conflict",
    ),
)
