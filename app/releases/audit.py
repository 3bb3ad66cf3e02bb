"""Check of the charges of releases (W8, W11).

Every release of private data must have a settled charge in the ledger.
"""

from sqlalchemy import select

from app.datasets.models import Dataset
from app.db import WriteSession
from app.ledger import Cause, Ledger
from app.releases.models import Release


def freeze_unaccounted(tx: WriteSession, ledger: Ledger) -> tuple[str, ...]:
    """Freeze the account of each release without a valid charge; return the releases' ids."""
    query = select(Release).join(Dataset, Dataset.id == Release.dataset_id)
    private = tx.scalars(query.where(Dataset.sensitivity == "private").order_by(Release.id)).all()
    missing = [release for release in private if not ledger.contains_settled(tx, release.job_id)]
    for release in missing:
        ledger.freeze(tx, release.dataset_id, Cause.MISMATCH)
    return tuple(release.id for release in missing)
