"""Mutants of ingestion: people, stored tables, and rejected uploads."""

from typing import Final

from tools.mutants.mutant import Mutant

_GROUPING: Final = "tests/enclave/test_grouping.py::"

INGESTION: Final = (
    Mutant(
        "the rows of a person in two batches are two people",
        "W5",
        "workers/enclave/grouping.py",
        (("compute_pseudonyms(self._key, units)", "compute_pseudonyms(secrets.token_bytes(KEY_BYTES), units)"),),
        _GROUPING + "test_w5_removing_a_person_removes_one_block",
    ),
    Mutant(
        "a person keeps null rows first",
        "W5",
        "workers/enclave/grouping.py",
        (("records[PRESENT] == 0, records[_UNIT]))", "records[PRESENT] != 0, records[_UNIT]))"),),
        _GROUPING + "test_each_person_keeps_the_rows_of_the_slow_grouping",
    ),
    Mutant(
        "a person may have more rows than declared",
        "W5",
        "workers/enclave/grouping.py",
        (
            (
                "blocks[_number_runs(starts, len(records)), _rank_rows(starts, len(records))] = records\n",
                (
                    "blocks[_number_runs(starts, len(records)), _rank_rows(starts, len(records))] = records\n"
                    "            blocks = blocks.repeat(2, axis=0)\n"
                ),
            ),
            (
                "            stays = self._admit(records[starts])\n",
                "            stays = self._admit(records[starts.repeat(2)])\n",
            ),
        ),
        _GROUPING + "test_w5_removing_a_person_removes_one_block",
    ),
    Mutant(
        "ids outside the declared bounds name one person",
        "W5",
        "workers/enclave/cells.py",
        (
            (
                "values[~((values >= unit.lower) & (values <= unit.upper))] = np.nan",
                "values = np.clip(values, unit.lower, unit.upper)",
            ),
        ),
        _GROUPING + "test_invalid_id_names_no_person",
    ),
    Mutant(
        "a row group splits a person",
        "W5",
        "workers/enclave/table_format.py",
        (
            (
                "return max(1, compute_group_rows(len(self.columns)) // self.rows_per_slot)",
                "return -(-compute_group_rows(len(self.columns)) // self.rows_per_slot)",
            ),
        ),
        _GROUPING + "test_no_row_group_splits_a_person",
    ),
    Mutant(
        "a table is padded to its last row group with rows only",
        "W3",
        "workers/enclave/table_writer.py",
        (("        while self._rest:\n", "        while self._filled:\n"),),
        "tests/enclave/test_stored_table.py::test_w3_size_follows_from_schema_and_slots_alone",
    ),
    Mutant(
        "a rejected upload leaves its table",
        "W3",
        "workers/enclave/ingest_parent.py",
        (("for name in () if is_ready else filter(", "for name in () if not is_ready else filter("),),
        "tests/enclave/test_ingest_parent.py::test_w3_outcome_is_from_the_closed_list_and_no_table_remains",
    ),
    Mutant(
        "a verdict outside the closed list passes",
        "W3",
        "workers/enclave/ingest_parent.py",
        (('"reason": str(reason), **rest} if reason in REASONS:', '"reason": str(reason), **rest}:'),),
        "tests/enclave/test_ingest_parent.py::test_w3_outcome_is_from_the_closed_list_and_no_table_remains",
    ),
    Mutant(
        "a rejection names cells",
        "W3",
        "workers/enclave/ingest_parent.py",
        (("                if _are_names(reason, names, declared)\n", "                if True\n"),),
        "tests/enclave/test_ingest_parent.py::test_w3_outcome_is_from_the_closed_list_and_no_table_remains",
    ),
    Mutant(
        "a parser's error becomes the verdict",
        "W3",
        "workers/enclave/ingest_process.py",
        (
            (
                '    except BaseException:  # noqa: BLE001 - no exception may cross the wall\n        return {"verdict": "failed"}',
                '    except BaseException as error:  # noqa: BLE001\n        return {"verdict": "failed", "why": repr(error)}',
            ),
        ),
        "tests/enclave/test_ingest_process.py::test_invalid_instructions_fail_without_a_message",
    ),
)
