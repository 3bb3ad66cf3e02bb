"""The data owner's steps: declare, upload, share, and read budget and ledger."""

from dataclasses import dataclass

from corevault import Budget, Client, Dataset, LedgerEntry

from demo import table

EPSILON, DELTA = 2.0, 1e-6


@dataclass(frozen=True, slots=True)
class Keys:
    """The two API keys that the administrator creates."""

    owner: str
    analyst: str
    analyst_id: str


def make_keys(admin: Client) -> Keys:
    """Creates the keys of an owner and an analyst."""
    owner = admin.keys.create("rand-hie-owner", "owner")
    analyst = admin.keys.create("health-economist", "analyst")
    return Keys(owner=str(owner.key), analyst=str(analyst.key), analyst_id=analyst.id)


def publish_table(owner: Client, tables: table.Tables, analyst_id: str) -> Dataset:
    """Declares and uploads the table, waits until it is ready, and shares it."""
    dataset = owner.datasets.create(
        "rand-hie",
        table.SCHEMA,
        slots=table.SLOTS,
        epsilon=EPSILON,
        delta=DELTA,
        description="RAND Health Insurance Experiment, person-years.",
    )
    owner.datasets.upload(dataset.id, tables.train, progress=True)
    owner.datasets.wait_until_ready(dataset.id)
    return owner.datasets.update(dataset.id, shared_with=[analyst_id])


def read_account(owner: Client, dataset_id: str) -> tuple[Budget, list[LedgerEntry]]:
    """The budget, and the ledger with its oldest entry first."""
    return owner.datasets.budget(dataset_id), list(owner.datasets.ledger(dataset_id))[::-1]
