"""Migration of stored objects from older versions, which kept all objects in one place."""

import shutil
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import unquote, urlsplit

from sqlalchemy import select

from app.config import Settings
from app.datasets.models import Content
from app.datasets.uploads.models import UploadPart
from app.db import Database, ReadSession
from app.releases.models import Release
from app.vault.errors import ObjectMissing
from app.vault.local_store import LocalStore
from app.vault.store import ObjectStore
from app.vault.stores import open_store

_PIECE_BYTES = 1 << 20


def sort_into_areas(settings: Settings, database: Database) -> None:
    """Move the objects from their old places to their areas; after a crash, the next call continues."""
    root = Path(unquote(urlsplit(settings.storage_url).path))
    if not settings.storage_url.startswith("file:") or not (root / "objects").exists():
        return
    old = LocalStore(root)
    with database.read() as session:
        for name, url in _places(session, settings):
            _move(old, open_store(url), name)
    for folder in ("objects", "unfinished", "notes"):  # objects that are still there belong to no row
        shutil.rmtree(root / folder, ignore_errors=True)


def _places(session: ReadSession, settings: Settings) -> Iterator[tuple[str, str]]:
    """Yield each object that a row names, and the URL of its area."""
    for upload in session.scalars(select(UploadPart.object_name)):
        yield upload, settings.incoming_url
    for table in session.scalars(select(Content.table_object).where(Content.table_object.is_not(None))):
        assert table is not None
        yield table, settings.vault_url
    for representations in session.scalars(select(Release.representations)):
        for stored in representations.values():
            yield stored["object"], settings.released_url


def _move(old: ObjectStore, area: ObjectStore, name: str) -> None:
    try:
        source = old.open(name)
    except ObjectMissing:
        return
    with source, area.create(name) as target:
        while piece := source.read(_PIECE_BYTES):
            target.write(piece)
        target.publish()
    old.delete(name)
