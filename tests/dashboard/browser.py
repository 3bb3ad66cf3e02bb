"""A browser without scripts: an HTTP client with a session cookie and the headers that browsers send."""

from collections.abc import Iterator
from contextlib import contextmanager

import httpx
from starlette.types import ASGIApp

from tests.factories.rows import Key
from tests.factories.transport import AppTransport

SAME_ORIGIN = {"Sec-Fetch-Site": "same-origin"}
ADDRESS = "http://corevault.test"


@contextmanager
def open_browser(application: ASGIApp, key: Key | None = None, *, address: str = ADDRESS) -> Iterator[httpx.Client]:
    """Open a browser, signed in with ``key`` if there is one."""
    with httpx.Client(transport=AppTransport(application), base_url=address, headers=SAME_ORIGIN) as browser:
        if key is not None:
            answer = sign_in(browser, key.secret)
            assert answer.status_code == 303, answer.text
        yield browser


def sign_in(browser: httpx.Client, secret: str, *, wanted: str = "/dashboard") -> httpx.Response:
    """Send the form of the sign-in page."""
    return browser.post("/dashboard/sign-in", data={"key": secret, "next": wanted})


def code_of(answer: httpx.Response) -> str:
    """Return the error code on an error page."""
    assert answer.headers["content-type"].startswith("text/html"), answer.text
    return answer.text.partition("<dt>Code</dt><dd><code>")[2].partition("<")[0]
