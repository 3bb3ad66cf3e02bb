"""Fetches JSON documents of the provider.

They are fetched over https only, without redirects, and with limits of size and time.
"""

import base64
import json
import ssl
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote_plus

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
        document = self._request("GET", url)
        if document is None:
            raise DependencyUnavailable(NO_ANSWER)
        return document

    def post(self, url: str, form: Mapping[str, str], secret: tuple[str, str] | None) -> dict[str, Any] | None:
        """Send a form, and return the JSON object of the answer; None if the provider refuses the form (400).

        ``secret``: id and secret of a client, for basic authentication.

        Raises:
            DependencyUnavailable: as :meth:`fetch`.
        """
        headers = {}
        if secret is not None:  # RFC 6749, section 2.3.1: both parts are form-encoded first
            pair = ":".join(quote_plus(part) for part in secret)
            headers["Authorization"] = f"Basic {base64.b64encode(pair.encode()).decode()}"
        return self._request("POST", url, data=dict(form), headers=headers)

    def _request(self, method: str, url: str, **sent: Any) -> dict[str, Any] | None:
        try:
            if httpx.URL(url).scheme != "https":
                raise DependencyUnavailable(NO_ANSWER)
            status, body = self._read(method, url, **sent)
            document = json.loads(body)
        except (httpx.HTTPError, httpx.InvalidURL, OSError, ValueError, RecursionError):
            raise DependencyUnavailable(NO_ANSWER) from None
        if status == 400 and method == "POST":
            return None
        if status != 200 or not isinstance(document, dict):
            raise DependencyUnavailable(NO_ANSWER)
        return document

    def _read(self, method: str, url: str, **sent: Any) -> tuple[int, bytes]:
        body, deadline = bytearray(), time.monotonic() + TIMEOUT_SECONDS
        client = httpx.Client(verify=self._trusted, timeout=TIMEOUT_SECONDS, follow_redirects=False, trust_env=False)
        client.headers["Accept"] = "application/json"
        with client, client.stream(method, url, **sent) as answer:
            for piece in answer.iter_bytes():
                body += piece
                if len(body) > LARGEST_BYTES or time.monotonic() > deadline:
                    raise DependencyUnavailable(NO_ANSWER)
            return answer.status_code, bytes(body)
