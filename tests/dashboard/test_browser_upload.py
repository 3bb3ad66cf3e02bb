"""The data owner's way in a real browser: sign in, declare, check a file, upload it, see it become ready."""

import base64
import hashlib
import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import parquet

from app.main import create_app
from support.chromium import Page
from tests.dashboard.appearance import AXE, check_appearance
from tests.dashboard.conftest import Visit
from tests.factories import rows
from tests.factories.served import served
from tests.factories.worker import House

pytestmark = [pytest.mark.process, pytest.mark.browser, pytest.mark.long]
COLUMNS: list[dict[str, Any]] = [
    {"name": "age", "type": "integer", "lower": 17, "upper": 90},
    {"name": "sex", "type": "categorical", "categories": ["Female", "Male"]},
    {"name": "employed", "type": "binary"},
]
CANARY = "canary-4711"
COMPLETE = ("POST", "/uploads")
HEADERS = {
    *("accept", "content-type", "content-digest", "upload-offset", "referer", "user-agent"),
    *("sec-ch-ua", "sec-ch-ua-mobile", "sec-ch-ua-platform"),
}
"""Headers of the page's requests; the upload's own ones state the place and the digest of a part."""
PART_BYTES = 1_000
IS_SCRIPTED = "!document.getElementById('uploader').hidden"
STATUS = "document.getElementById('status').textContent"
PAUSE_SOON = """
new MutationObserver(() => {
  if (document.getElementById('send-progress').value > 0.2) document.getElementById('pause').click();
}).observe(document.getElementById('status'), {childList: true})
"""
DROP = """(() => {
  const transfer = new DataTransfer();
  transfer.items.add(new File(['age,sex,employed\\n', '30,Male,1\\n'.repeat(900)], 'dropped.csv'));
  document.getElementById('drop').dispatchEvent(new DragEvent('drop', {dataTransfer: transfer, bubbles: true}));
})()"""
FAIL_ONCE = """(() => {
  const send = window.fetch;
  window.failed = 0;
  window.fetch = (address, options) => {
    if (options?.method !== 'PATCH' || window.failed) return send(address, options);
    window.failed += 1;
    return Promise.reject(new TypeError('no network'));
  };
})()"""


@pytest.fixture
def address(house: House) -> Iterator[str]:
    """Serve the house, with small parts."""
    limits = replace(house.services.limits, part_bytes=PART_BYTES)
    with served(create_app(replace(house.services, limits=limits))) as (host, port):
        yield f"http://{host}:{port}"


def _declare(house: House, owner: rows.Key, slots: int = 1_000) -> str:
    with house.client() as client:
        body = {"name": "visits", "sensitivity": "public", "columns": COLUMNS, "privacy_unit": {"kind": "row"}}
        answer = client.post("/v1/datasets", json=body | {"slots": slots}, headers=owner.headers)
        assert answer.status_code == 201, answer.text
        return str(answer.json()["id"])


def _write(folder: Path, lines: list[str], name: str = "table.csv") -> Path:
    path = folder / name
    path.write_text("\n".join(["age,sex,employed", *lines, ""]))
    return path


def _click(page: Page, name: str) -> None:
    page.run(f"document.getElementById('{name}').click()")


def _list_parts(page: Page) -> list[dict[str, Any]]:
    return [each for each in page.requests() if each["method"] == "PATCH"]


def test_an_owner_declares_checks_and_uploads_by_keyboard_alone(
    house: House, visit: Visit, owner: rows.Key, tmp_path: Path
) -> None:
    page = visit(owner, "/dashboard/declare")
    page.choose_file("#header-file", _write(tmp_path, [f"30,{CANARY},1"]))
    page.wait("document.getElementById('from-file-outcome').textContent.startsWith('3 names')")
    page.tab_to("it.id === 'name'")
    for text, field in (("visits", "slots"), ("1000", "epsilon"), ("2", "delta"), ("", "column-0-name")):
        page.type(text)
        page.tab_to(f"it.id === '{field}'")
    for index, kind in enumerate(("Whole", "Category", "Yes")):
        page.tab_to(f"it.id === 'column-{index}-type'")
        page.call("Input.dispatchKeyEvent", type="char", text=kind[0])
        page.wait(f"document.getElementById('column-{index}-type').selectedOptions[0].text.startsWith('{kind}')")
        for field, text in {0: (("lower", "17"), ("upper", "90")), 1: (("categories", "Female\nMale"),)}.get(index, ()):
            page.tab_to(f"it.id === 'column-{index}-{field}'")
            page.type(text)
    page.tab_to("it.value === 'declare'")
    page.press("Enter")
    page.wait("location.pathname.endsWith('/upload') && document.querySelector('.confirmation')")
    page.wait(IS_SCRIPTED)
    page.choose_file("#file", _write(tmp_path, [f"{20 + row % 50},Female,{row % 2}" for row in range(60)]))
    page.wait(f"{STATUS}.startsWith('The check is done')")
    page.tab_to("it.id === 'start'")
    page.press("Enter")
    page.wait(f"{STATUS}.startsWith('All bytes are stored')")
    house.work()
    page.wait(f"{STATUS} === 'The table is ready. Jobs can run on it.'")
    assert page.run("document.activeElement.textContent") == "Go to the dataset"
    assert page.faults() == []


def test_a_check_sends_no_request_and_an_upload_only_the_file(
    house: House, visit: Visit, owner: rows.Key, tmp_path: Path
) -> None:
    """W3: the browser's counts of cells and rows stay in the browser."""
    dataset = _declare(house, owner)
    page = visit(owner, f"/dashboard/datasets/{dataset}/upload")
    page.clear()
    table = _write(tmp_path, ["30,Male,1"] * 299 + [f"30,{CANARY},1"])
    page.choose_file("#file", table)
    page.wait(f"{STATUS}.startsWith('The check is done')")
    assert page.run("document.querySelector('#check-outcome strong').textContent") == (
        "1 of 300 rows (0.3 %) would be null, and contribute nothing."
    )
    assert page.requests() == []
    _click(page, "start")
    page.wait(f"{STATUS}.startsWith('All bytes are stored')")
    page.wait("true")
    sent = [(each["method"], each["url"].partition(dataset)[2].partition("/up_")[0]) for each in page.requests()]
    part = len(_list_parts(page))
    assert sent[: part + 3] == [("POST", "/uploads"), ("GET", "/uploads"), *[("PATCH", "/uploads")] * part, COMPLETE]
    assert set(sent[part + 3 :]) <= {("GET", "/content")}
    assert set(json.loads(page.requests()[0]["postData"])) == {"media_type", "length", "digest"}
    bodies = b"".join(
        base64.b64decode(entry["bytes"]) for each in _list_parts(page) for entry in each["postDataEntries"]
    )
    assert bodies == table.read_bytes()
    others = [each for each in page.requests() if each["method"] != "PATCH"]
    assert CANARY not in json.dumps(others)
    assert [each for each in others if each.get("postData")] == others[:1]
    names = {name.lower() for each in page.requests() for name in each["headers"]}
    assert names <= HEADERS


def test_many_null_rows_need_a_confirmation(house: House, visit: Visit, owner: rows.Key, tmp_path: Path) -> None:
    page = visit(owner, f"/dashboard/datasets/{_declare(house, owner)}/upload")
    page.clear()
    page.choose_file("#file", _write(tmp_path, ["30,M,1"] * 30 + ["30,Male,1"] * 30))
    page.wait(f"{STATUS}.startsWith('The check is done')")
    _click(page, "start")
    assert page.run("document.activeElement.id") == "consent"
    assert page.requests() == []
    page.press("Space")
    _click(page, "start")
    page.wait(f"{STATUS}.startsWith('All bytes are stored')")


def test_a_file_that_the_server_would_reject_is_not_offered(
    house: House, visit: Visit, owner: rows.Key, tmp_path: Path
) -> None:
    page = visit(owner, f"/dashboard/datasets/{_declare(house, owner, slots=5)}/upload")
    (tmp_path / "other.csv").write_text("age,sex,job\n30,Male,1\n")
    (tmp_path / "excel.csv").write_bytes(b"PK\x03\x04" + bytes(100))
    _write(tmp_path, ["30,Male,1"] * 6, "long.csv")
    for name, words in (("long", "more rows than the 5 slots"), ("other", "employed"), ("excel", "Excel workbook")):
        page.choose_file("#file", tmp_path / f"{name}.csv")
        page.wait(f"document.getElementById('check-outcome').textContent.includes({json.dumps(words)})")
        assert not page.run("document.getElementById('start').checkVisibility()")


def test_an_upload_is_paused_and_resumed_after_a_reload(
    house: House, visit: Visit, owner: rows.Key, tmp_path: Path
) -> None:
    dataset = _declare(house, owner)
    table = _write(tmp_path, [f"{20 + row % 50},Male,{row % 2}" for row in range(900)])
    page = visit(owner, f"/dashboard/datasets/{dataset}/upload")
    page.run(PAUSE_SOON)
    page.choose_file("#file", table)
    page.wait(f"{STATUS}.startsWith('The check is done')")
    page.run("document.getElementById('start').click()")
    page.wait(f"{STATUS}.startsWith('Paused')")
    page.open(page.run("location.href"))
    page.wait(IS_SCRIPTED)
    stored = page.run("document.querySelector('[data-upload] span').textContent")
    assert not stored.startswith("0 of")
    page.choose_file("#file", table)
    page.wait(f"{STATUS}.startsWith('The check is done')")
    page.clear()
    _click(page, "start")
    page.wait(f"{STATUS}.startsWith('All bytes are stored')")
    first = _list_parts(page)[0]
    assert int(first["headers"]["Upload-Offset"]) > 0
    assert not [each for each in page.requests() if each["method"] == "POST" and each["url"].endswith("/uploads")]
    house.work()
    page.wait(f"{STATUS} === 'The table is ready. Jobs can run on it.'")


def test_a_file_can_be_dropped_and_its_upload_cancelled(house: House, visit: Visit, owner: rows.Key) -> None:
    dataset = _declare(house, owner)
    page = visit(owner, f"/dashboard/datasets/{dataset}/upload")
    page.run(DROP)
    page.wait(f"{STATUS}.startsWith('The check is done')")
    page.run(PAUSE_SOON)
    _click(page, "start")
    page.wait(f"{STATUS}.startsWith('Paused')")
    _click(page, "cancel")
    page.wait(f"{STATUS}.startsWith('The upload is cancelled')")
    with house.client() as client:
        assert client.get(f"/v1/datasets/{dataset}/uploads", headers=owner.headers).json()["items"] == []
    assert page.run("document.activeElement.id") == "file"
    assert page.faults() == []


def test_a_lost_connection_is_survived_and_an_ended_session_too(
    house: House, visit: Visit, owner: rows.Key, tmp_path: Path
) -> None:
    page = visit(owner, f"/dashboard/datasets/{_declare(house, owner)}/upload")
    page.choose_file("#file", _write(tmp_path, [f"{20 + row % 50},Male,{row % 2}" for row in range(400)]))
    page.wait(f"{STATUS}.startsWith('The check is done')")
    page.run(FAIL_ONCE)
    cookies = page.call("Network.getCookies")["cookies"]
    page.call("Network.clearBrowserCookies")
    _click(page, "start")
    page.wait(f"{STATUS}.startsWith('You are signed out')")
    for cookie in cookies:
        page.call("Network.setCookie", name=cookie["name"], value=cookie["value"], url=page.run("location.href"))
    assert page.run("document.activeElement.id") == "start"
    page.press("Enter")
    page.wait(f"{STATUS}.startsWith('All bytes are stored')")
    assert page.run("failed") == 1


def test_a_parquet_file_is_sent_without_a_check_and_the_page_says_so(
    house: House, visit: Visit, owner: rows.Key, tmp_path: Path
) -> None:
    page = visit(owner, f"/dashboard/datasets/{_declare(house, owner)}/upload")
    table = {"age": [30, 40], "sex": ["Male", "Female"], "employed": [True, False]}
    parquet.write_table(pa.table(table), tmp_path / "table.parquet")
    page.choose_file("#file", tmp_path / "table.parquet")
    page.wait(f"{STATUS}.startsWith('The file cannot be checked here')")
    assert "does not read Parquet" in page.run("document.getElementById('check-outcome').textContent")
    _click(page, "start")
    page.wait(f"{STATUS}.startsWith('All bytes are stored')")
    house.work()
    page.wait(f"{STATUS} === 'The table is ready. Jobs can run on it.'")


def test_pages_have_no_accessibility_fault_and_no_overflow(
    house: House, visit: Visit, owner: rows.Key, tmp_path: Path, address: str
) -> None:
    """WCAG 2.2 AA as far as axe-core finds faults: narrow and wide, light and dark."""
    page = visit(owner, "/dashboard/declare")
    page.choose_file("#header-file", _write(tmp_path, ["30,Male,1"]))
    page.wait("document.getElementById('from-file-outcome').textContent")
    check_appearance(page)
    page.run("document.querySelector('.actions button').click()")
    page.wait("document.querySelector('.error-summary')")
    check_appearance(page)
    page.open(f"{address}/dashboard/datasets/{_declare(house, owner)}/upload?declared=1")
    page.wait(IS_SCRIPTED)
    page.choose_file("#file", _write(tmp_path, ["30,Male,1"] * 40 + ["12,M,0"], "table2.csv"))
    page.wait(f"{STATUS}.startsWith('The check is done')")
    check_appearance(page)


def test_axe_is_the_file_that_its_readme_names() -> None:
    assert hashlib.sha256(AXE.read_bytes()).hexdigest() in (AXE.parent / "README.md").read_text()


def test_the_upload_page_says_what_to_do_without_scripts(house: House, visit: Visit, owner: rows.Key) -> None:
    path = f"/dashboard/datasets/{_declare(house, owner)}/upload"
    page = visit(owner, path)
    page.call("Emulation.setScriptExecutionDisabled", value=True)
    page.open(page.run("location.href"))
    assert "curl -X PUT" in page.run("document.body.innerText")
    assert "Choose the file" not in page.run("document.body.innerText")
