"""Every published release of private data must have its settled charge in the chain (W8, W11)."""

from sqlalchemy import select

from app.datasets.models import Dataset
from app.db import WriteSession
from app.ledger import Cause, Ledger
from app.releases.models import Release


def freeze_unaccounted(tx: WriteSession, ledger: Ledger) -> tuple[str, ...]:
    """Freeze the account of each release whose charge is missing or altered; the ids of those releases."""
    query = select(Release).join(Dataset, Dataset.id == Release.dataset_id)
    private = tx.scalars(query.where(Dataset.sensitivity == "private").order_by(Release.id)).all()
    missing = [release for release in private if not ledger.contains_settled(tx, release.job_id)]
    for release in missing:
        ledger.freeze(tx, release.dataset_id, Cause.MISMATCH)
    return tuple(release.id for release in missing)
