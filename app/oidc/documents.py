"""Fetches JSON documents of the provider.

They are fetched over https only, without redirects, and with limits of size and time.
"""

import json
import ssl
import time
from pathlib import Path
from typing import Any, Final

import httpx

from app.errors import DependencyUnavailable

LARGEST_BYTES: Final = 2**20
TIMEOUT_SECONDS: Final = 5.0
NO_ANSWER: Final = "The sign-in service does not answer correctly; try again after the seconds in Retry-After."


class Documents:
    """Fetches documents. It ignores proxies and certificates in environment variables."""

    def __init__(self, ca_file: Path | None = None) -> None:
        """``ca_file``: a PEM file with the authorities to trust instead of the system's."""
        self._trusted = ssl.create_default_context(cafile=None if ca_file is None else str(ca_file))

    def fetch(self, url: str) -> dict[str, Any]:
        """Fetch the JSON object at ``url``.

        Raises:
            DependencyUnavailable: for every failure, including a redirect and a scheme other than https.
        """
        try:
            if httpx.URL(url).scheme != "https":
                raise DependencyUnavailable(NO_ANSWER)
            document = json.loads(self._read(url))
        except (httpx.HTTPError, httpx.InvalidURL, OSError, ValueError, RecursionError):
            raise DependencyUnavailable(NO_ANSWER) from None
        if not isinstance(document, dict):
            raise DependencyUnavailable(NO_ANSWER)
        return document

    def _read(self, url: str) -> bytes:
        body, deadline = bytearray(), time.monotonic() + TIMEOUT_SECONDS
        client = httpx.Client(verify=self._trusted, timeout=TIMEOUT_SECONDS, follow_redirects=False, trust_env=False)
        with client, client.stream("GET", url, headers={"Accept": "application/json"}) as answer:
            if answer.status_code != 200:
                raise DependencyUnavailable(NO_ANSWER)
            for piece in answer.iter_bytes():
                body += piece
                if len(body) > LARGEST_BYTES or time.monotonic() > deadline:
                    raise DependencyUnavailable(NO_ANSWER)
        return bytes(body)
