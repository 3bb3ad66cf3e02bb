"""Rules of access to releases."""

from collections.abc import Sequence

from app.auth.caller import Caller
from app.context import note_target
from app.datasets import access
from app.db import ReadSession
from app.errors import NotFound
from app.releases import repository
from app.releases.models import Release


def find_readable(session: ReadSession, caller: Caller | None, release_id: str) -> Release:
    """Find a release that is public, or whose dataset the caller may see.

    Raises:
        NotFound: there is no such release, or the caller may not see it.
    """
    release = repository.get(session, release_id)
    if release is None or (caller is None and not release.public):
        raise NotFound
    if caller is not None and not release.public:
        access.find_visible(session, caller, release.dataset_id)
    note_target(release.id)
    return release


def list_page(
    session: ReadSession, caller: Caller | None, *, dataset_id: str | None, before: str | None, limit: int
) -> Sequence[Release]:
    """List the releases that the caller may read, newest first."""
    return repository.list_page(
        session,
        None if caller is None else caller.id,
        sees_all=caller is not None and caller.role in access.OVERSEERS,
        dataset_id=dataset_id,
        before=before,
        limit=limit,
    )
