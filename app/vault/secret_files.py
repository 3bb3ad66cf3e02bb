"""Secrets from files that ``…_FILE`` variables name, so that no environment variable holds them."""

import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit


class UnreadableSecret(Exception):
    """The variable ``name`` names no readable file, or the secret itself is set too."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.name = name


def read_secrets(prefix: str, names: Iterable[str]) -> dict[str, str]:
    """Read the secrets from their files, without the final line break.

    Raises:
        UnreadableSecret: a file cannot be read, or its secret is set too. The message repeats no path or content.
    """
    values: dict[str, str] = {}
    for name in names:
        variable = f"{prefix}{name.upper()}"
        if not (path := os.environ.get(f"{variable}_FILE")):
            continue
        if os.environ.get(variable):
            raise UnreadableSecret(f"{name}_file")
        try:
            values[name] = Path(path).read_text(encoding="utf-8").rstrip("\r\n")
        except (OSError, UnicodeDecodeError):
            raise UnreadableSecret(f"{name}_file") from None
    return values


def pass_on(prefix: str, names: Iterable[str], values: dict[str, Any]) -> dict[str, str]:
    """Return the secrets as a child's environment variables; secrets from files stay in files."""
    variables: dict[str, str] = {}
    for name in names:
        variable = f"{prefix}{name.upper()}"
        original = [each for each in (f"{variable}_FILE", variable) if os.environ.get(each)]
        if original:
            variables[original[0]] = os.environ[original[0]]
        elif values.get(name) is not None:
            variables[variable] = str(values[name])
    return variables


def set_password(url: str, password: str | None) -> str:
    """Return ``url`` with this password, which replaces an existing one."""
    if password is None:
        return url
    parts = urlsplit(url)
    user, _, host = parts.netloc.rpartition("@")
    return parts._replace(netloc=f"{user.partition(':')[0]}:{quote(password, safe='')}@{host}").geturl()
