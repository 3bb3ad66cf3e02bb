"""Names of the tasks and the one way to send them: by name, with ids only, after the commit.

A message is a hint; the row is the truth. Losing one costs time (the sweeper sends it again), never a job.
"""

from collections.abc import Sequence
from typing import Protocol

RUN_JOB = "corevault.run_job"
INGEST_CONTENT = "corevault.ingest_content"
SUM_PARTITION = "corevault.sum_partition"
TASKS_QUEUE = "corevault"


class TaskQueue(Protocol):
    """What services need of a broker."""

    def send(self, task: str, identifier: str) -> None:
        """Send ``task`` for the row ``identifier``; never raises for a broker that is away."""

    def answers(self) -> bool:
        """Whether the broker takes messages at the moment."""

    def send_group(self, task: str, identifiers: Sequence[str]) -> None:
        """Send ``task`` for each identifier, as a Celery group; never raises for a broker that is away."""
