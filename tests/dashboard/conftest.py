"""Pages on a whole installation in this process, and a browser for each role."""

import json
from collections.abc import Callable, Iterator
from contextlib import ExitStack

import httpx
import pytest
from fastapi import FastAPI

from app.main import create_app
from support.chromium import Chromium, Page, open_chromium
from tests.dashboard.browser import open_browser
from tests.factories.rows import Key
from tests.factories.served import served
from tests.factories.worker import House

Open = Callable[[Key], httpx.Client]
Visit = Callable[..., Page]


@pytest.fixture
def pages(house: House) -> FastAPI:
    """Make the application of the house."""
    return create_app(house.services)


@pytest.fixture
def browse(pages: FastAPI) -> Iterator[Open]:
    """Return a function that opens a browser, signed in with a key."""
    with ExitStack() as stack:
        yield lambda key: stack.enter_context(open_browser(pages, key))


@pytest.fixture
def dataset(house: House, owner: Key, analyst: Key) -> str:
    """A ready dataset that its owner shares with the analyst."""
    return house.ready_dataset(owner, name="census", shared_with=(analyst.id,))


@pytest.fixture(scope="module")
def chromium(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Chromium]:
    with open_chromium(tmp_path_factory.mktemp("profile")) as browser:
        yield browser


@pytest.fixture
def address(pages: FastAPI) -> Iterator[str]:
    """Serve the pages on loopback."""
    with served(pages) as (host, port):
        yield f"http://{host}:{port}"


@pytest.fixture
def visit(chromium: Chromium, address: str) -> Visit:
    """Return a function that opens a page in Chromium, signed in with a key."""

    def open_page(key: Key, path: str, *, scripts: bool = True) -> Page:
        page = Page(chromium)
        page.resize(1440)
        page.open(f"{address}/dashboard/sign-in")
        page.run(f"document.getElementById('key').value = {json.dumps(key.secret)}")
        page.run("document.querySelector('main form').requestSubmit()")
        page.wait("location.pathname === '/dashboard' && document.readyState === 'complete'")
        page.call("Emulation.setScriptExecutionDisabled", value=not scripts)
        page.open(f"{address}{path}")
        return page

    return open_page
