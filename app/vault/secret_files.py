"""Secrets in files that a variable names, so that no environment holds them: ``…_FILE`` beside each."""

import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit


class UnreadableSecret(Exception):
    """The variable ``name`` names no file that can be read, or stands beside the secret itself."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.name = name


def secrets_from_files(prefix: str, names: Iterable[str]) -> dict[str, str]:
    """What the named files hold, without the line's end.

    Raises:
        UnreadableSecret: see there. Nothing of a file or its path is repeated.
    """
    found: dict[str, str] = {}
    for name in names:
        variable = f"{prefix}{name.upper()}"
        if not (path := os.environ.get(f"{variable}_FILE")):
            continue
        if os.environ.get(variable):
            raise UnreadableSecret(f"{name}_file")
        try:
            found[name] = Path(path).read_text(encoding="utf-8").rstrip("\r\n")
        except (OSError, UnicodeDecodeError):
            raise UnreadableSecret(f"{name}_file") from None
    return found


def pass_on(prefix: str, names: Iterable[str], values: dict[str, Any]) -> dict[str, str]:
    """The secrets as a child's variables: as files where they came from files, else as they are."""
    given: dict[str, str] = {}
    for name in names:
        variable = f"{prefix}{name.upper()}"
        original = [each for each in (f"{variable}_FILE", variable) if os.environ.get(each)]
        if original:
            given[original[0]] = os.environ[original[0]]
        elif values.get(name) is not None:
            given[variable] = str(values[name])
    return given


def with_password(url: str, password: str | None) -> str:
    """``url`` with the password in it, in place of the one that it may have."""
    if password is None:
        return url
    parts = urlsplit(url)
    user, _, host = parts.netloc.rpartition("@")
    return parts._replace(netloc=f"{user.partition(':')[0]}:{quote(password, safe='')}@{host}").geturl()
