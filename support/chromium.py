"""A real browser for tests: Debian's Chromium, driven over a pipe by the Chrome DevTools Protocol.

The protocol needs no library and no port: messages are JSON texts, each followed by a null character, on the file
descriptors 3 (to the browser) and 4 (from it).
"""

import base64
import json
import os
import queue
import re
import shutil
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

SECONDS: Final = 60.0
"""Longest wait for the browser; a shared machine may be slow."""
_OPTIONS: Final = (
    *("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--remote-debugging-pipe"),
    *("--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-extensions"),
    *("--disable-sync", "--disable-features=Translate,OptimizationHints,MediaRouter", "--password-store=basic"),
)
_KEYS: Final = {"Tab": 9, "Enter": 13, "Space": 32, "ArrowDown": 40}
_ICON: Final = re.compile(r"/dashboard/static/icon\.[0-9a-f]{16}\.svg$")
_TEXTS: Final = {"Enter": "\r", "Space": " "}


class BrowserFailed(AssertionError):
    """The browser refused a command or did not answer, or a script failed."""


class Chromium:
    """One browser process."""

    def __init__(self, folder: Path) -> None:
        program = shutil.which("chromium")
        assert program is not None, "This test needs Chromium. Install Debian's package chromium, as .ci/run does."
        to_browser, self._sender = os.pipe()
        self._receiver, from_browser = os.pipe()
        redirected = f'exec "$0" "$@" 3<&{to_browser} 4>&{from_browser}'
        command = ["bash", "-c", redirected, program, *_OPTIONS, f"--user-data-dir={folder}", "about:blank"]
        self._process = subprocess.Popen(
            command, pass_fds=(to_browser, from_browser), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        os.close(to_browser)
        os.close(from_browser)
        self._answers: dict[int, queue.SimpleQueue[dict[str, Any]]] = {}
        self._number = 0
        self.events: list[dict[str, Any]] = []
        threading.Thread(target=self._read, daemon=True).start()

    def call(self, method: str, session: str | None = None, **parameters: Any) -> dict[str, Any]:
        """Send a command, and return its result."""
        self._number += 1
        message: dict[str, Any] = {"id": self._number, "method": method, "params": parameters}
        answers = self._answers[self._number] = queue.SimpleQueue()
        data = json.dumps(message | ({} if session is None else {"sessionId": session})).encode() + b"\0"
        while data:
            data = data[os.write(self._sender, data) :]
        try:
            answer = answers.get(timeout=SECONDS)
        except queue.Empty:
            raise BrowserFailed(f"{method}: no answer") from None
        if "error" in answer:
            raise BrowserFailed(f"{method}: {answer['error']}")
        result: dict[str, Any] = answer["result"]
        return result

    def close(self) -> None:
        """End the browser."""
        self._process.terminate()
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait(10)
        os.close(self._sender)

    def _read(self) -> None:
        with os.fdopen(self._receiver, "rb") as stream:
            rest = b""
            while data := stream.read1(1 << 16):
                *messages, rest = (rest + data).split(b"\0")
                for message in map(json.loads, messages):
                    if "id" in message:
                        self._answers.pop(message["id"]).put(message)
                    else:
                        self.events.append(message)


class Page:
    """One tab. Tabs share no cookies."""

    def __init__(self, browser: Chromium, *, scripts: bool = True) -> None:
        self._browser = browser
        self._context = browser.call("Target.createBrowserContext")["browserContextId"]
        target = browser.call("Target.createTarget", url="about:blank", browserContextId=self._context)["targetId"]
        self._session = browser.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Network", "Runtime", "Log", "DOM"):
            self.call(f"{domain}.enable")
        if not scripts:
            self.call("Emulation.setScriptExecutionDisabled", value=True)

    def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        return self._browser.call(method, self._session, **parameters)

    def open(self, address: str) -> None:
        """Open a page, and wait until it is loaded."""
        count = len(self._list("Page.loadEventFired"))
        answer = self.call("Page.navigate", url=address)
        assert "errorText" not in answer, answer
        _wait(lambda: len(self._list("Page.loadEventFired")) > count, address)

    def run(self, script: str) -> Any:
        """Evaluate an expression in the page."""
        answer = self.call("Runtime.evaluate", expression=script, awaitPromise=True, returnByValue=True)
        if "exceptionDetails" in answer:
            raise BrowserFailed(f"{script}: {answer['exceptionDetails']}")
        return answer["result"].get("value")

    def wait(self, script: str) -> None:
        """Wait until an expression is true, also across the load of another page."""

        def is_true() -> bool:
            try:
                return bool(self.run(f"Boolean({script})"))
            except BrowserFailed:
                return False

        _wait(is_true, script)

    def go_back(self) -> None:
        """Go back in the history, after the answer: a page that is left at once has none."""
        self.run("void setTimeout(() => history.back())")

    def press(self, key: str, *, shift: bool = False) -> None:
        """Press and release a key."""
        name = " " if key == "Space" else key
        common = {"key": name, "code": key, "windowsVirtualKeyCode": _KEYS[key], "modifiers": 8 if shift else 0}
        text = {"text": _TEXTS[key]} if key in _TEXTS else {}
        self.call("Input.dispatchKeyEvent", type="keyDown", **common, **text)
        self.call("Input.dispatchKeyEvent", type="keyUp", **common)

    def type(self, text: str) -> None:
        """Insert text at the focus."""
        self.call("Input.insertText", text=text)

    def tab_to(self, script: str, most: int = 80) -> None:
        """Press Tab until the focused element, ``it``, fulfils a condition."""
        for _ in range(most):
            self.press("Tab")
            if self.run(f"(it => {script})(document.activeElement)"):
                return
        raise BrowserFailed(f"no element that the keyboard reaches fulfils {script}")

    def choose_file(self, selector: str, path: Path) -> None:
        """Choose a file in a file input."""
        root = self.call("DOM.getDocument")["root"]["nodeId"]
        node = self.call("DOM.querySelector", nodeId=root, selector=selector)["nodeId"]
        self.call("DOM.setFileInputFiles", nodeId=node, files=[str(path)])

    def allow_downloads(self, folder: Path) -> None:
        """Let the tab download files into ``folder``."""
        folder.mkdir()
        settings = {"behavior": "allow", "browserContextId": self._context, "downloadPath": str(folder)}
        self._browser.call("Browser.setDownloadBehavior", **settings)

    def wait_for_download(self, folder: Path) -> Path:
        """Wait for a complete download in ``folder``, and return its path. Partial files have another suffix."""
        _wait(lambda: any(each.suffix != ".crdownload" for each in folder.iterdir()), "a download")
        return next(each for each in folder.iterdir() if each.suffix != ".crdownload")

    def resize(self, width: int, height: int = 900, *, scheme: str = "light", forced: str = "none") -> None:
        """Set the size of the window, the colour scheme and forced colours. Colours change without a transition."""
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)
        media = {"prefers-color-scheme": scheme, "forced-colors": forced, "prefers-reduced-motion": "reduce"}
        features = [{"name": name, "value": value} for name, value in media.items()]
        self.call("Emulation.setEmulatedMedia", features=features)

    def capture(self, width: int, height: int) -> bytes:
        """Capture the visible part of the page as PNG, in CSS pixels."""
        clip = {"x": 0, "y": self.run("scrollY"), "width": width, "height": height, "scale": 1}
        return base64.b64decode(self.call("Page.captureScreenshot", captureBeyondViewport=True, clip=clip)["data"])

    def photograph(self, path: Path) -> None:
        """Write an image of the whole page."""
        size = self.call("Page.getLayoutMetrics")["cssContentSize"]
        clip = {"x": 0, "y": 0, "width": size["width"], "height": size["height"], "scale": 1}
        image = self.call("Page.captureScreenshot", captureBeyondViewport=True, clip=clip)
        path.write_bytes(base64.b64decode(image["data"]))

    def requests(self) -> list[dict[str, Any]]:
        """List the requests since :meth:`clear`. The icon is left out, because it has no fixed time."""
        requests = [event["params"]["request"] for event in self._list("Network.requestWillBeSent")]
        return [each for each in requests if _ICON.search(each["url"]) is None]

    def clear(self) -> None:
        """Forget the events so far."""
        self._browser.events.clear()

    def faults(self) -> list[str]:
        """List errors of scripts and breaches of the security policy since :meth:`clear`."""
        thrown = [str(event["params"]) for event in self._list("Runtime.exceptionThrown")]
        entries = [event["params"]["entry"] for event in self._list("Log.entryAdded")]
        return thrown + [str(entry) for entry in entries if entry["level"] == "error" and entry["source"] != "network"]

    def _list(self, method: str) -> list[dict[str, Any]]:
        events = list(self._browser.events)
        return [event for event in events if event["method"] == method and event.get("sessionId") == self._session]


def _wait(is_true: Any, what: str) -> None:
    deadline = time.monotonic() + SECONDS
    while not is_true():
        if time.monotonic() > deadline:
            raise BrowserFailed(f"waited in vain for {what}")
        time.sleep(0.1)


@contextmanager
def open_chromium(folder: Path) -> Iterator[Chromium]:
    """Open a browser with its profile in ``folder``."""
    browser = Chromium(folder)
    try:
        yield browser
    finally:
        browser.close()
