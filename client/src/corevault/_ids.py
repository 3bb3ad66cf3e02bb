"""What a call is about: its id, or the object that the server told of it."""

from collections.abc import Iterable

from corevault.replies.dataset import Dataset
from corevault.replies.job import Job
from corevault.replies.key import ApiKey
from corevault.replies.release import Release

Known = Dataset | Job | Release | ApiKey


def id_of(given: str | Known | None, kind: type[Known]) -> str:
    """The id. Raises ``TypeError`` for anything but text and a ``kind``: another thing's id would lead nowhere."""
    if isinstance(given, str):
        return given
    if isinstance(given, kind):
        return given.id
    if given is None and kind is Release:
        raise TypeError("Give an id (text) or a Release; a job has none before it has succeeded: see jobs.wait.")
    raise TypeError(f"Give an id (text) or a {kind.__name__}; this is of type {type(given).__name__}.")


def ids_of(given: Iterable[str | Known], kind: type[Known]) -> list[str]:
    """The ids of several. Raises ``TypeError`` for a single one, whose letters would pass for ids."""
    if isinstance(given, str | Dataset | Job | Release | ApiKey):
        raise TypeError(f"Give a list of ids or of {kind.__name__} objects, also for one.")
    return [id_of(each, kind) for each in given]
