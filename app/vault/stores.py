"""Open the store that a storage URL names."""

import tempfile
from pathlib import Path
from typing import Final
from urllib.parse import SplitResult, parse_qs, unquote, urlsplit

from app.vault.errors import VaultError
from app.vault.local_store import LocalStore
from app.vault.store import ObjectStore

_PARAMETERS: Final = frozenset({"endpoint", "region", "scratch"})
_EXPECTED: Final = (
    "A storage URL reads file:///absolute/path or s3://bucket/prefix?endpoint=…&region=…&scratch=/absolute/path "
    "(all three optional)."
)


def open_store(url: str) -> ObjectStore:
    """Open a store, without a request to it.

    Raises:
        VaultError: for an unsupported URL; the message does not repeat the URL.
    """
    parts = urlsplit(url)
    path = unquote(parts.path)
    if parts.scheme == "file" and parts.netloc in {"", "localhost"} and path.startswith("/") and not parts.query:
        return LocalStore(Path(path))
    if parts.scheme == "s3" and parts.netloc:
        return _open_s3(url, parts)
    raise VaultError(_EXPECTED)


def make_folder_url(url: str, name: str) -> str:
    """Make the URL of the folder ``name`` below ``url``."""
    parts = urlsplit(url)
    return parts._replace(path=f"{parts.path.rstrip('/')}/{name}").geturl()


def _open_s3(url: str, parts: SplitResult) -> ObjectStore:
    from app.vault.s3_keys import Place, S3Keys  # noqa: PLC0415  (a large library, needed for S3 only)
    from app.vault.s3_store import S3Store  # noqa: PLC0415

    parameters = parse_qs(parts.query, keep_blank_values=True)
    if (
        not set(parameters) <= _PARAMETERS
        or "@" in parts.netloc
        or any(len(values) > 1 for values in parameters.values())
    ):
        raise VaultError(_EXPECTED)
    options = {name: values[0] for name, values in parameters.items()}
    place = Place(parts.netloc, unquote(parts.path).strip("/"), options.get("endpoint"), options.get("region"))
    return S3Store(S3Keys(place), url, Path(options.get("scratch") or tempfile.gettempdir()))
