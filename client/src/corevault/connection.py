"""The address and API key of a connection: from arguments, the environment, or the file of ``corevault login``."""

import json
import os
import stat
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple

from corevault._arguments import describe
from corevault.client import Client
from corevault.errors import InvalidArgument, UnreadableSource, WrongType

URL: Final = "COREVAULT_URL"
API_KEY: Final = "COREVAULT_API_KEY"
FILE: Final = "COREVAULT_CREDENTIALS"


class Credentials(NamedTuple):
    """The address of a server, and an API key for it. The key is None for public releases only."""

    url: str
    api_key: str | None

    def __repr__(self) -> str:
        return f"Credentials(url={self.url!r}, api_key={'None' if self.api_key is None else '…'})"


def connect(base_url: str | None = None, api_key: str | None = None, **options: Any) -> Client:
    """A client for the given server, or for the server of the environment.

    Arguments come first, then the environment variables ``COREVAULT_URL`` and ``COREVAULT_API_KEY``, then the file that
    ``corevault login`` writes.
    A key from the file is sent to the address in that file only. ``Client`` takes the ``options``.

    Raises ``InvalidArgument`` if there is no address, and if other users can read the file.

    >>> connect("https://corevault.example", "cv_1")
    Client('https://corevault.example')
    """
    found = find_credentials(base_url, api_key)
    return Client(found.url, found.api_key, **options)


def find_credentials(
    base_url: str | None = None, api_key: str | None = None, environment: Mapping[str, str] | None = None
) -> Credentials:
    """The credentials of ``connect``."""
    environment = os.environ if environment is None else environment
    url = base_url or environment.get(URL)
    key = api_key or _key_of_environment(base_url, environment)
    if url is not None and key is not None:
        return Credentials(url, key)
    path = find_file(environment)
    stored = read_file(path) if path.exists() else None
    if url is None and stored is None:
        raise InvalidArgument(f"There is no server to connect to; set {URL}, pass base_url, or run corevault login.")
    if stored is None or (url is not None and url.rstrip("/") != stored.url.rstrip("/")):
        assert url is not None, "checked above"
        return Credentials(url, key)
    return Credentials(stored.url, key or stored.api_key)


def _key_of_environment(base_url: str | None, environment: Mapping[str, str]) -> str | None:
    """The key of the environment; None if the environment has it for another address than ``base_url``."""
    is_for_other = base_url is not None and environment.get(URL, base_url).rstrip("/") != base_url.rstrip("/")
    return None if is_for_other else environment.get(API_KEY) or None


def find_file(environment: Mapping[str, str] | None = None) -> Path:
    """The path of the credentials: ``COREVAULT_CREDENTIALS``, or in the user's folder for configuration."""
    environment = os.environ if environment is None else environment
    if given := environment.get(FILE):
        return Path(given)
    folder = environment.get("XDG_CONFIG_HOME") or Path.home() / ".config"
    return Path(folder) / "corevault" / "credentials.json"


def read_file(path: Path) -> Credentials:
    """Reads the credentials.

    Raises ``InvalidArgument`` if other users can read the file, or if it has another form, and ``UnreadableSource`` if
    it cannot be read.
    """
    try:
        with path.open("rb") as file:
            status, content = os.fstat(file.fileno()), file.read(1 << 16)
    except OSError as error:
        raise UnreadableSource(f"{path} cannot be read; run corevault login again.") from error
    if os.name == "posix":
        if stat.S_IMODE(status.st_mode) & 0o077:
            raise InvalidArgument(
                f"Other users may read or change {path}, which holds an API key; run chmod 600 on it, and replace the "
                "key if somebody may have read it."
            )
        if status.st_uid != os.geteuid():
            raise InvalidArgument(f"{path} belongs to another user; run corevault login to write your own.")
    try:
        stored = json.loads(content)
        url, key = stored["url"], stored.get("api_key")
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise InvalidArgument(f"{path} is not a file of corevault login; run corevault login again.") from error
    if not isinstance(url, str) or not isinstance(key, str | None):
        raise InvalidArgument(f"{path} is not a file of corevault login; run corevault login again.")
    return Credentials(url, key)


def write_file(credentials: Credentials, path: Path) -> None:
    """Writes the credentials with mode 0600, at once. Raises ``UnreadableSource`` if that fails."""
    if not isinstance(credentials, Credentials):
        raise WrongType(f"credentials must be Credentials; {describe(credentials)}.")
    part = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        handle = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        try:
            with os.fdopen(handle, "w", encoding="utf-8") as file:
                json.dump(credentials._asdict(), file)
            part.replace(path)
        finally:
            part.unlink(missing_ok=True)
    except OSError as error:
        raise UnreadableSource(f"{path} cannot be written; set {FILE} to a path that you may write.") from error
