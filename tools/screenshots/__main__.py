"""Makes the images in ``docs/images``, on a temporary server with made-up data."""

import io
import json
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from PIL import Image

from demo.server import run_server
from support.chromium import Chromium, Page, open_chromium
from tools.screenshots.sample import Sample, make_sample

FOLDER: Final = Path(__file__).resolve().parents[2] / "docs" / "images"
WIDTH, HEIGHT = 1_100, 860
COLOURS: Final = 256
"""Colours of an image; so few make files small, and text stays sharp."""


WHAT_IF: Final = """(() => {
  const form = document.querySelector('form[action$="what-if/limit"]');
  form.elements.limit_epsilon.value = '3';
  form.elements.limit_delta.value = '1e-7';
  form.requestSubmit();
})()"""
QUOTE: Final = """(() => {
  const form = document.querySelector('main form');
  form.elements.target.value = 'sick';
  form.querySelectorAll('[name=features]').forEach((each) => (each.checked = each.value !== 'sick'));
  form.requestSubmit();
})()"""


@dataclass(frozen=True, slots=True)
class View:
    """One image: the page at ``path`` as ``caller`` sees it. Before it, ``script`` runs and ``ready`` becomes true."""

    name: str
    caller: str
    path: str
    script: str = ""
    ready: str = "true"
    width: int = WIDTH
    height: int = HEIGHT
    scheme: str = "light"


def list_views(sample: Sample) -> list[View]:
    """List the images."""
    population, dataset = f"/populations/{sample.dataset_id}", f"/datasets/{sample.dataset_id}"
    return [
        View("budgets", "owner", ""),
        View("budgets-narrow", "owner", "", width=390, height=780, scheme="dark"),
        View("population", "owner", population),
        View("history", "owner", population, script=_scroll("#history")),
        View("what-if", "owner", population, script=WHAT_IF, ready="document.querySelector('.actions')", height=900),
        View(
            "verification", "owner", f"{population}/verification", ready="document.querySelector('.columns .good ~ *')"
        ),
        View("dataset", "owner", dataset),
        View("declare", "owner", "/declare", height=1_100),
        View("upload", "owner", f"{dataset}/upload"),
        View(
            "price",
            "analyst",
            f"/price?dataset_id={sample.dataset_id}",
            script=QUOTE,
            ready="document.querySelector('.good')",
        ),
        View("job", "analyst", f"/jobs/{sample.job_id}"),
        View("release", "analyst", f"/releases/{sample.release_id}"),
        View("points", "analyst", f"/releases/{sample.release_id}", script=_scroll("figure")),
        View("audit-log", "auditor", "/audit-log", height=700),
        View("keys", "admin", "/keys", height=700),
        View("system", "auditor", "/system"),
    ]


def _scroll(selector: str) -> str:
    return f"document.querySelector('{selector}').scrollIntoView()"


def make_images(browser: Chromium, address: str, sample: Sample, folder: Path) -> None:
    """Make all images in ``folder``."""
    keys = {name: getattr(sample, name) for name in ("owner", "analyst", "auditor", "admin")}
    pages = {name: _sign_in(browser, address, key) for name, key in keys.items()}
    folder.mkdir(exist_ok=True)
    for view in list_views(sample):
        page = pages[view.caller]
        page.resize(view.width, view.height, scheme=view.scheme)
        page.call("Emulation.setTimezoneOverride", timezoneId="UTC")
        page.open(f"{address}/dashboard{view.path}")
        if view.script:
            page.run(view.script)
        page.wait(f"document.readyState === 'complete' && {view.ready}")
        save(page.capture(view.width, view.height), folder / f"{view.name}.png")


def _sign_in(browser: Chromium, address: str, key: str) -> Page:
    page = Page(browser)
    page.open(f"{address}/dashboard/sign-in")
    page.run(f"document.getElementById('key').value = {json.dumps(key)}")
    page.run("document.querySelector('main form').requestSubmit()")
    page.wait("location.pathname === '/dashboard' && document.readyState === 'complete'")
    return page


def save(image: bytes, path: Path) -> None:
    """Write a small PNG with few colours."""
    with Image.open(io.BytesIO(image)) as full:
        small = full.convert("RGB").quantize(COLOURS, method=Image.Quantize.MEDIANCUT, dither=Image.Dither.NONE)
        small.save(path, optimize=True)
    sys.stdout.write(f"{path.name}: {path.stat().st_size / 1024:.0f} KB\n")


def main() -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with run_server(folder) as server, open_chromium(folder / "profile") as browser:
            sample = make_sample(server.base_url, server.admin_key, folder)
            make_images(browser, server.base_url, sample, FOLDER)


if __name__ == "__main__":
    main()
