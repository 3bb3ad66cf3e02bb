"""Arguments and files of commands. A mistake is found before anything is bought or sent."""

import getpass
import json
import os
import sys
from argparse import Namespace
from pathlib import Path
from typing import Any, Final

from corevault.errors import InvalidArgument, UnexpectedReply, UnreadableSource
from corevault.schema import Schema

_PREFIXES: Final = {"ds_": "dataset", "job_": "job", "rel_": "release"}
_COLUMN_FORM: Final = 'write each column as {"name": "age", "type": "integer", "lower": 0, "upper": 120}.'


def check_output(path: str | None) -> None:
    """Raises before anything is bought or sent: for a suffix without a format, and for a place that is not writable."""
    if path is not None:
        from corevault.resources.releases import find_points_format  # noqa: PLC0415 - a command's own import

        find_points_format(path)
        folder = Path(path).absolute().parent
        if not folder.is_dir() or not os.access(folder, os.W_OK) or Path(path).is_dir():
            raise UnreadableSource(f"{path} cannot be written; pass a path in a folder that you may use.")


def read_check(options: Namespace) -> tuple[str | None, str]:
    """The dataset, None with ``--schema``, and the table."""
    given, named = options.given, options.dataset or options.schema
    if len(given) == 1 and named is None:
        raise InvalidArgument(
            "check needs the dataset and the table, as in corevault check clinic clinic.csv; or --schema with a file "
            "of declared columns, and the table."
        )
    if len(given) > (2 if named is None else 1):
        raise InvalidArgument("check takes one dataset and one table.")
    return (given[0], given[1]) if named is None else (options.dataset, given[0])


def require_dataset_first(dataset: str, table: str) -> None:
    if Path(dataset).is_file() and not Path(table).exists():
        raise InvalidArgument(f"{dataset} is a file; write the dataset first and the table second.")


def require_id(given: str, kind: str) -> None:
    """Raises ``InvalidArgument`` for the id of something else."""
    for prefix, other in _PREFIXES.items():
        if given.startswith(prefix) and other != kind:
            raise InvalidArgument(f"{given} is the id of a {other}; this command takes the id of a {kind}.")


def read_schema(path: str) -> tuple[Schema, Any]:
    """The declared columns of a file, and its ``privacy_unit`` or None.

    The file holds an array of columns, or an object with ``columns``, as the server shows a dataset.
    """
    found = read_json(path, (list, dict))
    columns, unit = (found.get("columns"), found.get("privacy_unit")) if isinstance(found, dict) else (found, None)
    if not isinstance(columns, list) or not columns:
        raise InvalidArgument(f"{path} must hold a JSON array of columns, or an object with such an array as columns.")
    try:
        return Schema.from_json(columns), unit
    except UnexpectedReply as error:
        reason = error.__cause__ if isinstance(error.__cause__, InvalidArgument) else None
        raise InvalidArgument(f"{path} does not declare columns: {reason or _COLUMN_FORM}") from error


def read_json(path: str, kind: type | tuple[type, ...]) -> Any:
    try:
        found = json.loads(Path(path).read_text(encoding="utf-8"))
    except OSError as error:
        raise UnreadableSource(f"{path} cannot be read; check that it exists and that you may read it.") from error
    except (ValueError, RecursionError) as error:
        raise InvalidArgument(f"{path} is not a JSON file.") from error
    if not isinstance(found, kind):
        raise InvalidArgument(f"{path} must hold a JSON object.")
    return found


def read_key(path: str | None) -> str:
    if path == "-":
        return sys.stdin.readline()
    if path is not None:
        try:
            return Path(path).read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise UnreadableSource(f"{path} cannot be read; pass the path of a key file.") from error
    if not sys.stdin.isatty():
        raise InvalidArgument("There is no terminal to ask for the key; pass --key-file, or --key-file - for a pipe.")
    return getpass.getpass("API key: ")
