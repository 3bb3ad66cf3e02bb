"""Checks of a page in a real browser: accessibility by axe-core, overflow, errors of scripts and of the policy."""

from pathlib import Path
from typing import Final

from support.chromium import Page

AXE: Final = Path(__file__).parent / "axe" / "axe.min.js"


def check_appearance(page: Page) -> None:
    """Check a page narrow and wide, light and dark.

    WCAG 2.2 AA, as far as axe-core finds faults.
    """
    page.run(f"{AXE.read_text()};0")
    for width, scheme in ((1440, "light"), (1440, "dark"), (360, "light")):
        page.resize(width, scheme=scheme)
        assert page.run("document.documentElement.scrollWidth - innerWidth") <= 0, width
        found = page.run("axe.run().then(found => found.violations.map(each => [each.id, each.nodes[0].html]))")
        assert found == [], (width, scheme)
    page.resize(1440)
    assert page.faults() == []
