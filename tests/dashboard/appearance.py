"""Checks of a page in a real browser: accessibility by axe-core, overflow, the keyboard, forced colours, errors."""

from pathlib import Path
from typing import Any, Final

from support.chromium import Page

AXE: Final = Path(__file__).parent / "axe" / "axe.min.js"
LOOKS: Final = (
    *((1440, "light", "none"), (360, "dark", "none")),
    *((1440, "dark", "active"), (360, "light", "active")),
)
"""Width, colour scheme and forced colours of each look. The stylesheet's own test has every colour in both schemes."""
_CHECK: Final = """
axe.run({rules: {'target-size': {enabled: true}, 'color-contrast': {enabled: ENABLED}}}).then((found) => [
  document.documentElement.scrollWidth - innerWidth,
  found.violations.map((each) => [each.id, each.nodes[0].html, each.nodes[0].any[0]?.message]),
])
"""
_FAINT: Final = """(() => {
  const parse = (colour) => (colour.match(/[\\d.]+/g) ?? []).map(Number);
  const light = (rgb) => rgb.slice(0, 3).map((each) => each / 255)
    .map((each) => (each <= 0.04045 ? each / 12.92 : ((each + 0.055) / 1.055) ** 2.4))
    .reduce((sum, each, place) => sum + each * [0.2126, 0.7152, 0.0722][place], 0);
  const findPaper = (it) => {
    for (let each = it; each; each = each.parentElement) {
      const paper = parse(getComputedStyle(each).backgroundColor);
      if (paper.length === 3) return paper;
    }
    return parse(getComputedStyle(document.body).backgroundColor);
  };
  const hasText = (it) => [...it.childNodes].some((each) => each.nodeType === 3 && each.data.trim());
  return [...document.body.querySelectorAll('*')].filter((it) => hasText(it) && it.checkVisibility()).filter((it) => {
    const style = getComputedStyle(it), ink = it instanceof SVGElement ? style.fill : style.color;
    const [low, high] = [light(parse(ink)), light(findPaper(it))].sort((first, second) => first - second);
    return (high + 0.05) / (low + 0.05) < 4.5;
  }).map((it) => it.outerHTML.slice(0, 200));
})()"""
"""Texts with too little contrast. With forced colours axe-core reads the colours that the page states, not these."""
_WIDE: Final = """
[location.pathname, ...[...document.querySelectorAll('main *')].filter((it) => it.closest('.scroll, pre') === null)
  .filter((it) => it.getBoundingClientRect().right > innerWidth).map((it) => it.outerHTML.slice(0, 200)).slice(0, 3)]
"""
"""The page, and the first elements that are too wide."""
_SCROLLS: Final = """
[...document.querySelectorAll('.scroll:has(.stack)')].filter((it) => it.scrollWidth > it.clientWidth)
  .map((it) => it.ariaLabel)
"""
"""Tables that become cards on narrow pages, and scroll sideways nevertheless."""
_CUT: Final = """
[document.documentElement, ...document.querySelectorAll('main .scroll, main pre')]
  .filter((it) => it.checkVisibility() && it.scrollWidth > it.clientWidth)
  .map((it) => [it.ariaLabel ?? it.tagName, it.scrollWidth - it.clientWidth])
"""
"""Elements that a printer would cut off, and by how many pixels."""
PAPER: Final = 718
"""Width of A4 between the margins of a browser, in CSS pixels."""
_CELLS: Final = ("cell", "columnheader", "rowheader")
_LIST_STOPS: Final = """(() => {
  const names = 'a[href], button, input, select, textarea, summary, [tabindex="0"]';
  const isStop = (it) => it.tabIndex >= 0 && !it.disabled && it.type !== 'hidden' && it.checkVisibility();
  window.stops = new Set([...document.querySelectorAll(names)].filter(isStop));
  document.activeElement.blur();
  getSelection().removeAllRanges();
  return window.stops.size;
})()"""
_NOTE_STOP: Final = """(() => {
  const it = document.activeElement;
  const {outlineStyle, outlineWidth} = getComputedStyle(it), place = it.getBoundingClientRect();
  const isShown = outlineStyle !== 'none' && parseFloat(outlineWidth) >= 2;
  const isInView = place.bottom > 0 && place.top < innerHeight && place.right > 0 && place.left < innerWidth;
  window.stops.delete(it);
  for (const each of window.stops) if (!each.isConnected) window.stops.delete(each);  // a page that follows jobs
  const isPart = it.type === 'date' && !it.matches(':focus');  // its button shows the focus
  return [it === document.body || isPart || (isShown && isInView) ? '' : it.outerHTML.slice(0, 200), window.stops.size];
})()"""


def check_appearance(page: Page) -> None:
    """Check a page in each look, and by keyboard.

    WCAG 2.2 AA, as far as axe-core finds faults, with its rule for the size of targets.
    """
    page.run(f"{AXE.read_text()};0")
    for width, scheme, forced in LOOKS:
        page.resize(width, scheme=scheme, forced=forced)
        overflow, found = page.run(_CHECK.replace("ENABLED", "true" if forced == "none" else "false"))
        assert found == [], (width, scheme, forced, found)
        assert overflow <= 0, (width, overflow, page.run(_WIDE))
        assert page.run(_SCROLLS) == [], width
        assert find_uneven_tables(page) == [], width
        assert forced == "none" or (faint := page.run(_FAINT)) == [], (scheme, faint)
    check_print(page)
    page.resize(1440)
    check_keyboard(page)
    assert page.faults() == []


def check_print(page: Page) -> None:
    """Check that a printed page shows everything."""
    page.resize(PAPER)
    page.call("Emulation.setEmulatedMedia", media="print")
    assert page.run(_CUT) == [], page.run("location.pathname")


def find_uneven_tables(page: Page) -> list[list[int]]:
    """List the tables that a screen reader meets with rows of different lengths: the numbers of cells of their rows.

    A screen reader finds the header of a cell by its place in the row, so each row needs all its cells.
    """
    page.call("Accessibility.enable")
    nodes = {each["nodeId"]: each for each in page.call("Accessibility.getFullAXTree")["nodes"]}

    def list_below(node: dict[str, Any], roles: tuple[str, ...]) -> list[dict[str, Any]]:
        children = [nodes[each] for each in node.get("childIds", ()) if each in nodes]
        matching = [[each] if _read_role(each) in roles else list_below(each, roles) for each in children]
        return [each for group in matching for each in group]

    tables = [each for each in nodes.values() if _read_role(each) == "table"]
    lengths = [[len(list_below(row, _CELLS)) for row in list_below(table, ("row",))] for table in tables]
    return [each for each in lengths if len(set(each)) > 1]


def _read_role(node: dict[str, Any]) -> str:
    return "" if node.get("ignored") else str(node["role"]["value"])


def check_keyboard(page: Page) -> None:
    """Check that Tab reaches all controls and links.

    Each one shows its focus (criteria 2.1.1 and 2.4.7)."""
    left, presses = page.run(_LIST_STOPS), 0
    most = 3 * left + 30  # a date has several stops, and a box that scrolls is one
    while left:
        assert presses < most, page.run("[...stops].map((it) => it.outerHTML.slice(0, 200))")
        page.press("Tab")
        fault, left = page.run(_NOTE_STOP)
        assert fault == "", fault
        presses += 1
