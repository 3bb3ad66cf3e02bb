"""Ids of arguments: methods accept an object of the server wherever they accept its id."""

from collections.abc import Iterable

from corevault._arguments import what_came
from corevault.errors import WrongType
from corevault.replies.dataset import Dataset, OpenUpload
from corevault.replies.job import Job
from corevault.replies.key import ApiKey
from corevault.replies.release import Release

Known = Dataset | Job | Release | ApiKey | OpenUpload


def id_of(given: str | Known | None, kind: type[Known]) -> str:
    """The id. Raises ``WrongType`` for anything but text and a ``kind``: another thing's id would lead nowhere."""
    if isinstance(given, str):
        return given
    if isinstance(given, kind):
        return given.id
    if given is None and kind is Release:
        raise WrongType("Give an id (text) or a Release; a job has none before it has succeeded: see jobs.wait.")
    raise WrongType(f"Give an id (text) or an object of the class {kind.__name__}; {what_came(given)}.")


def ids_of(given: Iterable[str | Known], kind: type[Known]) -> list[str]:
    """The ids of several. Raises ``WrongType`` for a single one, whose letters would pass for ids."""
    if isinstance(given, str | Dataset | Job | Release | ApiKey) or not isinstance(given, Iterable):
        raise WrongType(f"Give a list of ids or of {kind.__name__} objects, also for one.")
    return [id_of(each, kind) for each in given]
