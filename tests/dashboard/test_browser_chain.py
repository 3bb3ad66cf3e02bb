"""The browser's verification of a real chain finds every alteration (W11)."""

import json
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import pytest
import rfc8785
import sqlalchemy as sa

from app.dashboard.pages import population
from tests.dashboard.appearance import check_appearance
from tests.dashboard.conftest import Open, Visit
from tests.factories import rows
from tests.factories.chains import Part, alter, make_account, rehash
from tests.factories.tampering import drop_triggers, table
from tests.factories.worker import House

SCRIPT: Final = Path(__file__).parent / "checks" / "chain.mjs"
OUTCOME: Final = "document.querySelector('#browser-check .panel')"


def run_in_node(cases: list[dict[str, Any]], values: tuple[Any, ...] = ()) -> dict[str, Any]:
    """Verify each case's parts with the page's script."""
    node = shutil.which("node")
    assert node is not None, "This test needs Node.js. Install Debian's package nodejs, as .ci/run does."
    order = json.dumps({"cases": cases, "values": values})
    ended = subprocess.run([node, SCRIPT], input=order, capture_output=True, text=True, check=False, timeout=100)
    assert ended.returncode == 0, ended.stderr
    outcomes: dict[str, Any] = json.loads(ended.stdout)
    return outcomes


def _verify(*parts: list[Part], without: bool = False) -> list[dict[str, Any]]:
    outcomes: list[dict[str, Any]] = run_in_node([{"parts": each, "without": without} for each in parts])["outcomes"]
    return outcomes


@pytest.fixture
def dataset(house: House, owner: rows.Key, analyst: rows.Key) -> str:
    return make_account(house, owner, analyst)


@pytest.fixture
def part(browse: Open, owner: rows.Key, dataset: str) -> Part:
    answer: Part = browse(owner).get(f"/dashboard/populations/{dataset}/chain").json()
    return answer


def test_the_chain_of_a_real_account_verifies(part: Part) -> None:
    (outcome,) = _verify([part])
    newest = part["entries"][-1]
    assert [each["kind"] for each in part["entries"]][-2:] == ["reserved", "reserved"]
    assert {"limit_changed", "settled"} <= {each["kind"] for each in part["entries"]}
    assert (outcome["entries"], outcome["hash"]) == (newest["sequence"], newest["entry_hash"])
    assert outcome["signatures"] == len(part["checkpoints"]) + 3 + 1  # reservations, and the head
    assert (outcome["first"], outcome["none"], outcome["tail"]) == (1, 0, 2)


def test_every_alteration_is_found(part: Part) -> None:
    cases = dict(alter(part))
    outcomes = _verify(*([case] for case in cases.values()))
    assert len(cases) > 9 * len(part["entries"])
    assert [name for name, outcome in zip(cases, outcomes, strict=True) if "fault" not in outcome] == []


def test_every_alteration_of_an_entry_is_found_without_ed25519(part: Part) -> None:
    cases = {name: case for name, case in alter(part) if name.startswith("entries")}
    outcomes = _verify(*([case] for case in cases.values()), without=True)
    assert [name for name, outcome in zip(cases, outcomes, strict=True) if "fault" not in outcome] == []
    (outcome,) = _verify([part], without=True)
    assert outcome["signatures"] is None


def test_a_chain_that_was_hashed_again_fails_by_its_signatures(part: Part) -> None:
    assert rehash(part, lambda _: None) == part
    changes: list[Callable[[Part], None]] = [
        lambda each: each["entries"][0].update(epsilon_after=0.5),
        lambda each: each["entries"][-1].update(body={**each["entries"][-1]["body"], "epsilon": 0.001}),
        lambda each: each["entries"].pop(1),
        lambda each: each["entries"].append({**each["entries"][-1], "kind": "voided"}),
        lambda each: each["entries"].append({**each["entries"][-1], "kind": "limit_changed", "body": {"epsilon": 9}}),
    ]
    forged = [rehash(part, change) for change in changes]
    assert ["fault" in each for each in _verify(*([each] for each in forged))] == [True] * len(changes)
    assert not any("fault" in each for each in _verify([forged[0]], [forged[1]], without=True))
    kept = [{**each, "checkpoints": part["checkpoints"], "head": part["head"]} for each in forged]
    assert ["fault" in each for each in _verify(*([each] for each in kept))] == [True] * len(changes)


def test_a_chain_in_parts_verifies_and_its_parts_cannot_be_left_out(
    browse: Open, owner: rows.Key, dataset: str, part: Part, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(population, "CHAIN_ROWS", 2)
    browser, parts = browse(owner), list[Part]()
    while not parts or parts[-1]["after"] is not None:
        after = parts[-1]["after"] if parts else 0
        parts.append(browser.get(f"/dashboard/populations/{dataset}/chain", params={"after": after}).json())
    assert [entry for each in parts for entry in each["entries"]] == part["entries"]
    assert [mark for each in parts for mark in each["checkpoints"]] == part["checkpoints"]
    whole, *broken = _verify(parts, *(parts[:index] + parts[index + 1 :] for index in range(len(parts))), parts[::-1])
    assert whole["entries"] == len(part["entries"])
    assert ["fault" in each for each in broken] == [True] * (len(parts) + 1)


def test_the_script_writes_canonical_json() -> None:
    values: tuple[Any, ...] = (
        {"b": 1, "a": [True, None, {"z": 'é\u2028\x1f"\\/', "A": -0.5}], "": "😀", "é": 0, "😀": 1, "\ufb33": 2},
        [1e21, 1e-7, 1e20, 0.1 + 0.2, 5e-324, 1.7976931348623157e308, 1e-6, 123456789.125, -0.0, 2**53 - 1],
    )
    assert run_in_node([], values)["forms"] == [rfc8785.dumps(value).decode() for value in values]


@pytest.mark.process
@pytest.mark.browser
@pytest.mark.long
def test_a_real_browser_verifies_and_finds_a_noted_entry(
    visit: Visit, owner: rows.Key, dataset: str, part: Part
) -> None:
    page = visit(owner, f"/dashboard/populations/{dataset}/verification")
    page.wait(f"{OUTCOME}.classList.contains('good')")
    words = page.run(f"{OUTCOME}.textContent")
    assert f"All {len(part['entries'])} entries follow each other" in words
    assert part["keys"][0]["key_id"] in words
    for entry_hash, found in ((part["entries"][2]["entry_hash"], "as entry 3"), ("0" * 64, "does not contain")):
        page.run(f"document.getElementById('hash').value = '{entry_hash}'")
        page.run("document.getElementById('noted').requestSubmit()")
        page.wait(f"document.querySelector('#noted [role=status]').textContent.includes('{found}')")
    check_appearance(page)


@pytest.mark.process
@pytest.mark.browser
@pytest.mark.long
def test_a_real_browser_shows_an_altered_entry(house: House, visit: Visit, owner: rows.Key, dataset: str) -> None:
    with house.database.write() as tx:
        drop_triggers(tx)
        tx.execute(sa.update(table("ledger_entries")).where(sa.text("sequence = 3")).values(epsilon_after=0.001))
    page = visit(owner, f"/dashboard/populations/{dataset}/verification")
    page.wait(f"{OUTCOME}.classList.contains('bad')")
    assert "Entry 3 was altered." in page.run(f"{OUTCOME}.textContent")
    assert "The chain does not verify" in page.run("document.querySelector('main .columns').innerText")


@pytest.mark.process
@pytest.mark.browser
@pytest.mark.long
def test_the_page_is_honest_where_signatures_or_scripts_fail(visit: Visit, owner: rows.Key, dataset: str) -> None:
    path = f"/dashboard/populations/{dataset}/verification"
    page = visit(owner, path, scripts=False)
    assert "Scripts are off, so your browser has verified nothing" in page.run("document.body.innerText")
    page = visit(owner, "/dashboard")
    page.call("Page.addScriptToEvaluateOnNewDocument", source="crypto.subtle.importKey = () => Promise.reject()")
    page.open(page.run(f"new URL('{path}', location.href).href"))
    page.wait(f"{OUTCOME}.classList.contains('warn')")
    assert "no signature was checked" in page.run(f"{OUTCOME}.textContent")
