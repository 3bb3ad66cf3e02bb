"""The settings of the worker's Celery application."""

from pathlib import Path

from app.config import Settings
from workers.celery_app import make_celery


def test_worker_is_free_before_the_lease_of_its_lost_run_ends(tmp_path: Path) -> None:
    """A worker can take over the run of its killed process."""
    settings = Settings(data_dir=tmp_path)
    assert make_celery(settings).conf.worker_lost_wait < settings.lease_seconds
