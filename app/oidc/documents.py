"""JSON documents of the provider: over https only, never by way of a redirect, small, and soon or not at all."""

import json
import ssl
import time
from pathlib import Path
from typing import Any, Final

import httpx

from app.errors import DependencyUnavailable

LARGEST_BYTES: Final = 2**20
PATIENCE_SECONDS: Final = 5.0
AWAY: Final = "The sign-in service does not answer as it should; try again after Retry-After."


class Documents:
    """Fetches one document at a time. Proxies and certificates named in the environment do not count."""

    def __init__(self, ca_file: Path | None = None) -> None:
        """``ca_file``: a PEM file with the authorities to trust instead of the system's."""
        self._trusted = ssl.create_default_context(cafile=None if ca_file is None else str(ca_file))

    def fetch(self, url: str) -> dict[str, Any]:
        """The JSON object at ``url``.

        Raises:
            DependencyUnavailable: for whatever stands in the way, a redirect and a scheme other than https included.
        """
        try:
            if httpx.URL(url).scheme != "https":
                raise DependencyUnavailable(AWAY)
            document = json.loads(self._read(url))
        except (httpx.HTTPError, httpx.InvalidURL, OSError, ValueError, RecursionError):
            raise DependencyUnavailable(AWAY) from None
        if not isinstance(document, dict):
            raise DependencyUnavailable(AWAY)
        return document

    def _read(self, url: str) -> bytes:
        body, deadline = bytearray(), time.monotonic() + PATIENCE_SECONDS
        client = httpx.Client(verify=self._trusted, timeout=PATIENCE_SECONDS, follow_redirects=False, trust_env=False)
        with client, client.stream("GET", url, headers={"Accept": "application/json"}) as answer:
            if answer.status_code != 200:
                raise DependencyUnavailable(AWAY)
            for piece in answer.iter_bytes():
                body += piece
                if len(body) > LARGEST_BYTES or time.monotonic() > deadline:
                    raise DependencyUnavailable(AWAY)
        return bytes(body)
