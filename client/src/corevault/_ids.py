"""Ids of arguments. Methods accept an object as well as its id."""

import re
from collections.abc import Iterable, Mapping
from typing import Final

from corevault._arguments import describe
from corevault.errors import InvalidArgument, WrongType
from corevault.replies.dataset import Dataset, OpenUpload
from corevault.replies.job import Job
from corevault.replies.key import ApiKey
from corevault.replies.release import Release

_SHAPE = re.compile(r"(ds|job|rel|key|up)_[0-9a-z]{26}")
_KINDS: Final[Mapping[str, type]] = {"ds": Dataset, "job": Job, "rel": Release, "key": ApiKey, "up": OpenUpload}
Known = Dataset | Job | Release | ApiKey | OpenUpload


def read_id(given: str | Known | None, kind: type[Known]) -> str:
    """The id of ``given``.

    Raises ``WrongType`` for anything but text and an object of the class ``kind``, and ``InvalidArgument`` for the id
    of another kind.
    """
    if isinstance(given, str):
        shaped = _SHAPE.fullmatch(given)
        other = _KINDS[shaped[1]] if shaped else kind
        if other is not kind:
            raise InvalidArgument(
                f"{given} belongs to an object of the class {other.__name__}; pass the id of a {kind.__name__}."
            )
        return given
    if isinstance(given, kind):
        return given.id
    if given is None and kind is Release:
        raise WrongType("Pass an id (text) or a Release. A job without a release has not succeeded: call jobs.wait.")
    raise WrongType(f"Pass an id (text) or an object of the class {kind.__name__}; {describe(given)}.")


def read_ids(given: Iterable[str | Known], kind: type[Known]) -> list[str]:
    """The ids of several objects. Raises ``WrongType`` for a single id, whose letters would count as ids."""
    if isinstance(given, str | Dataset | Job | Release | ApiKey) or not isinstance(given, Iterable):
        raise WrongType(f"Pass a list of ids or of {kind.__name__} objects, even for a single one.")
    return [read_id(each, kind) for each in given]
