"""Carries out the commands of ``corevault-worker``, and reports wrong settings."""

import sys

from pydantic import ValidationError

from app.collector import pause_collection
from app.config import Settings
from app.errors import CorevaultError
from app.setting_faults import describe_faults
from workers.composition import rewrap_keys
from workers.process import forbid_core_dumps


def run(command: str | None) -> None:
    """Carry out ``command``, or work until asked to stop if it is None; report wrong settings in one line."""
    try:
        settings = Settings()
        if command == "rewrap":
            _rewrap(settings)
        else:
            with pause_collection():
                from workers.celery_worker import work  # noqa: PLC0415  (Celery and all methods: not for `rewrap`)
            work(settings)
    except ValidationError as error:
        sys.exit(f"corevault-worker: these settings are not valid: {describe_faults(error)}")
    except CorevaultError as error:
        sys.exit(f"corevault-worker: {error.detail}")


def _rewrap(settings: Settings) -> None:
    forbid_core_dumps()
    result = rewrap_keys(settings)
    sys.stdout.write(f"{result.resealed_boxes} keys sealed again\n")
    if result.has_pending_uploads:
        sys.exit("uploads that need a retired opening key are still waiting; repeat the command after their ingestion")
