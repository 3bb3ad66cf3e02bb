"""Mutants of series, in which each person counts once."""

from typing import Final

from tools.mutants.mutant import Mutant

_WORKER: Final = "tests/workers/test_series.py::"
_ENCLAVE: Final = "tests/enclave/test_registers.py::"

SERIES: Final = (
    Mutant(
        "a content does not wait for earlier ones",
        "W5",
        "app/datasets/ingestion.py",
        (('"received", free, alive, make_turn_condition())', '"received", free, alive)'),),
        f"{_WORKER}test_a_content_waits_for_earlier_ones_of_its_series",
    ),
    Mutant(
        "deletion of a block frees its people",
        "W5",
        "app/datasets/series.py",
        (
            (
                '            Content.status == "ready",\n',
                '            Content.status == "ready",\n            Dataset.deleted_at.is_(None),\n',
            ),
        ),
        f"{_WORKER}test_deletion_of_a_block_frees_nobody",
    ),
    Mutant(
        "a superseded content frees its people",
        "W5",
        "app/datasets/series.py",
        (
            (
                '            Content.status == "ready",\n',
                '            Content.status == "ready",\n            Content.table_object.is_not(None),\n',
            ),
        ),
        f"{_WORKER}test_superseded_contents_keep_their_registers",
    ),
    Mutant(
        "a block's own people are taken from it",
        "W5",
        "app/datasets/series.py",
        (("            Content.dataset_id != dataset.id,\n", ""),),
        f"{_WORKER}test_a_new_version_keeps_its_people_and_takes_nobody_elses",
    ),
    Mutant(
        "a register has everybody in the upload",
        "W5",
        "workers/enclave/registers.py",
        (("self._kept.append(names[stays])", "self._kept.append(names)"),),
        f"{_ENCLAVE}test_a_later_content_of_the_first_block_keeps_its_people",
    ),
    Mutant(
        "people who return are counted after they are left out",
        "W14",
        "workers/enclave/registers.py",
        (
            (
                "        self._seen = np.unique(np.concatenate([self._seen, *self._waiting]))\n",
                (
                    "        self._seen = np.unique(np.concatenate([self._seen, *self._waiting]))\n"
                    "        for register in self._order.earlier:\n"
                    "            earlier = read_register(self._vault, self._order.key, register)\n"
                    "            self._seen = self._seen[~_find(self._seen, earlier)]\n"
                ),
            ),
        ),
        f"{_ENCLAVE}test_an_ingestion_shows_nothing_of_who_returned",
    ),
    Mutant(
        "a register is not padded",
        "W3",
        "workers/enclave/registers.py",
        (("np.concatenate([kept, spare]))", "kept)"),),
        f"{_ENCLAVE}test_an_ingestion_shows_nothing_of_who_returned",
    ),
    Mutant(
        "rows of people who return stay",
        "W5",
        "workers/enclave/grouping.py",
        (("np.where(stays, blocks[name], blocks.dtype[name].type(0))", "blocks[name]"),),
        f"{_ENCLAVE}test_a_person_counts_in_the_first_block_only",
    ),
    Mutant(
        "blocks may have other units",
        "W5",
        "app/datasets/series.py",
        (("    if row.unit != unit:\n", "    if False:\n"),),
        "tests/datasets/test_series.py::test_a_block_with_another_unit_is_refused",
    ),
)
