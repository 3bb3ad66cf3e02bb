"""The data of the images: a made-up ward with three datasets, an analyst, releases and a refused job."""

import random
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from corevault import Client, LogisticRegression, Schema, binary, categorical, integer
from corevault.errors import BudgetExceeded

ROWS: Final = 4_000
SCHEMA: Final = Schema(integer("age", 18, 90), categorical("sex", ["female", "male"]), binary("smoker"), binary("sick"))
MODEL: Final = LogisticRegression(features=["age", "sex", "smoker"], target="sick")
SMALL: Final = LogisticRegression(features=["age"], target="sick")


@dataclass(frozen=True, slots=True)
class Sample:
    """The keys of four callers, and the ids of their objects."""

    admin: str
    owner: str
    analyst: str
    auditor: str
    dataset_id: str
    job_id: str
    release_id: str


def make_sample(address: str, admin_key: str, folder: Path) -> Sample:
    """Make the sample on a running server."""
    with Client(address, admin_key) as admin:
        owner, analyst = admin.keys.create("ward 7", role="owner"), admin.keys.create("ana", role="analyst")
        auditor = admin.keys.create("audit office", role="auditor")
    table = folder / "ward.csv"
    table.write_text("\n".join(["age,sex,smoker,sick", *_make_rows(), ""]))
    with Client(address, owner.key) as ours, Client(address, analyst.key) as hers:
        dataset = ours.datasets.create(
            "Ward visits 2024",
            SCHEMA,
            slots=5_000,
            epsilon=2.0,
            population="patients",
            shared_with=[analyst],
            description="One row a patient.",
        )
        ours.datasets.upload(dataset, table)
        ours.datasets.wait_until_ready(dataset)
        ours.datasets.create("Ward visits 2025", SCHEMA, slots=5_000, epsilon=1.0, population="patients")
        ours.datasets.create("Staff survey", Schema(integer("years", 0, 50), binary("content")), slots=800, epsilon=1.0)
        ours.jobs.wait(ours.jobs.submit(dataset, SMALL, size=20, epsilon=0.2, purpose="Pilot"))
        job = hers.jobs.wait(hers.jobs.submit(dataset, MODEL, size=40, epsilon=0.8, purpose="Table 2 of the study"))
        with suppress(BudgetExceeded):
            hers.jobs.submit(dataset, MODEL, size=40, epsilon=1.9)
        ids = {"dataset_id": dataset.id, "job_id": job.id, "release_id": str(job.release_id)}
        return Sample(admin_key, str(owner.key), str(analyst.key), str(auditor.key), **ids)


def _make_rows() -> Iterator[str]:
    draw = random.Random(7)  # noqa: S311 - made-up patients
    for _ in range(ROWS):
        age, smoker = draw.randint(18, 90), draw.random() < 0.3
        sick = draw.random() < age / 150 + 0.2 * smoker
        yield f"{age},{draw.choice(['female', 'male'])},{int(smoker)},{int(sick)}"
