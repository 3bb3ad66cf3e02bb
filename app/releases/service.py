"""Who may read a release."""

from collections.abc import Sequence

from app.auth.caller import Caller
from app.context import note_target
from app.datasets import access
from app.db import ReadSession
from app.errors import NotFound
from app.releases import repository
from app.releases.models import Release


def readable(session: ReadSession, caller: Caller | None, release_id: str) -> Release:
    """A public release, or one on a dataset that the caller sees.

    Raises:
        NotFound: otherwise, also for a release that exists.
    """
    release = repository.get(session, release_id)
    if release is None or (caller is None and not release.public):
        raise NotFound
    if caller is not None and not release.public:
        access.visible(session, caller, release.dataset_id)
    note_target(release.id)
    return release


def page(
    session: ReadSession, caller: Caller | None, *, dataset_id: str | None, before: str | None, limit: int
) -> Sequence[Release]:
    """Readable releases, newest first."""
    return repository.page(
        session,
        None if caller is None else caller.id,
        sees_all=caller is not None and caller.role in access.OVERSEERS,
        dataset_id=dataset_id,
        before=before,
        limit=limit,
    )
