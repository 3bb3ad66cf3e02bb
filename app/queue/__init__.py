"""Names of the Celery tasks, and the protocol that sends them.

A task is sent by name, with ids only, after the commit. The row in the database decides, not the message. A lost
message delays a job until the sweeper sends it again.
"""

from collections.abc import Sequence
from typing import Protocol

RUN_JOB = "corevault.run_job"
INGEST_CONTENT = "corevault.ingest_content"
SUM_PARTITION = "corevault.sum_partition"
TASKS_QUEUE = "corevault"


class TaskQueue(Protocol):
    """The functions of a broker that services use."""

    def send(self, task: str, identifier: str) -> None:
        """Send ``task`` for the row ``identifier``; a broker that does not answer raises nothing."""

    def answers(self) -> bool:
        """Return whether the broker accepts messages now."""

    def send_group(self, task: str, identifiers: Sequence[str]) -> None:
        """Send ``task`` for each identifier, as a Celery group; a broker that does not answer raises nothing."""
