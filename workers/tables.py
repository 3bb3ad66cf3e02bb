"""Opens the pinned table of a run."""

from app.vault.store import ObjectStore
from workers.assignments import Assignment
from workers.enclave import OpeningKey, StoredTable, make_layout, open_table


class EnclaveTables:
    """Opens the table of an assignment, with only the columns that its plan reads.

    It is a :data:`workers.assignments.OpenTable`.
    """

    def __init__(self, store: ObjectStore, opening_key: OpeningKey) -> None:
        self._store = store
        self._opening_key = opening_key

    def __call__(self, assignment: Assignment) -> StoredTable:
        """Open the table.

        Raises:
            VaultError: a key or the table cannot be decrypted.
            DependencyUnavailable: the store cannot be reached.
        """
        run = assignment.run
        return open_table(
            self._store,
            assignment.table_object,
            opening_key=self._opening_key,
            dataset_id=run.dataset_id,
            version=run.content_version,
            dataset_box=assignment.dataset_box,
            wrapped_key=assignment.wrapped_key,
            facts_digest=assignment.facts_digest,
            layout=make_layout(run.facts.columns, run.facts.slots, run.facts.unit),
            needed=run.plan.columns,
            public=run.facts.sensitivity == "public",
        )
