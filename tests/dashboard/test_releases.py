"""The pages of releases."""

import ast
import html
import json
import re
from typing import Any

import pytest
import sqlalchemy as sa
from corevault import Pseudocoreset
from fastapi import FastAPI

from app.dashboard.certificates import describe_certificate
from app.dashboard.wording import format_number
from app.releases.models import Release
from tests.dashboard.browser import code_of, open_browser
from tests.dashboard.conftest import Open
from tests.dashboard.html_checks import find_faults
from tests.factories import rows
from tests.factories.worker import House


def _publish(house: House, owner: rows.Key, **fields: Any) -> str:
    job = house.job(house.ready_dataset(owner, **fields), owner)
    house.run(job)
    release = house.read(job).release_id
    assert release is not None
    return release


def _grade(house: House, release: str, reliability: dict[str, Any] | None) -> None:
    with house.database.write() as tx:
        row = tx.get_one(Release, release)
        body = {name: value for name, value in row.body.items() if name != "reliability"}
        changed = body if reliability is None else {**body, "reliability": reliability}
        tx.execute(sa.update(Release).where(Release.id == release).values(body=changed))


def test_a_public_release_needs_no_session(house: House, pages: FastAPI, owner: rows.Key) -> None:
    release = _publish(house, owner)
    with open_browser(pages) as visitor:
        page = visitor.get(f"/dashboard/releases/{release}")
        assert page.status_code == 200
        listed, cost = visitor.get("/dashboard/releases").text, visitor.get(f"/v1/releases/{release}").json()["cost"]
        assert release in listed
        assert f"ε {format_number(cost['epsilon'])}" in listed
    for words in ("Certificate", "Protected is one row", "client.releases.download", "points as csv", "ed25519:"):
        assert words in page.text
    assert "/dashboard/populations/" not in page.text


def test_snippets_call_methods_that_the_client_has(house: House, browse: Open, owner: rows.Key) -> None:
    page = html.unescape(browse(owner).get(f"/dashboard/releases/{_publish(house, owner)}").text)
    use = page.partition("<h2>Use it")[2].partition("<h3>Files")[0]
    blocks = re.findall(r"<code>(.*?)</code>", use, re.DOTALL)
    python = [block for block in blocks if "core." in block]
    assert len(python) == 6
    for block in python:
        ast.parse(block)
    called = set(re.findall(r"core\.([a-z_]+)\(", "".join(python)))
    assert called == {"posterior", "to_pandas", "numpyro_model", "pymc_model", "stan", "to_inference_data"}
    assert all(callable(getattr(Pseudocoreset, name)) for name in called)
    assert "read.csv" in blocks[-1]


def test_the_entry_for_a_registry_states_the_certificate(house: House, browse: Open, owner: rows.Key) -> None:
    browser, release = browse(owner), _publish(house, owner)
    page = html.unescape(browser.get(f"/dashboard/releases/{release}").text)
    entry = json.loads(page.partition("Nothing is sent.</p>")[2].partition("<code>")[2].partition("</code>")[0])
    statement = browser.get(f"/v1/releases/{release}/certificate").json()["statement"]
    assert entry["cost_of_this_release"] == statement["privacy"]
    assert entry["limit_of_all_releases"] == statement["account"]["limit"]
    assert (entry["neighbours"], entry["slots"]) == (statement["relation_in_words"], statement["slots"])
    assert entry["certificate"].endswith(f"/v1/releases/{release}/certificate")


def test_a_private_release_is_hidden_from_visitors(house: House, pages: FastAPI, owner: rows.Key) -> None:
    release = _publish(house, owner, releases_public=False)
    with open_browser(pages) as visitor:
        answer = visitor.get(f"/dashboard/releases/{release}")
        assert (answer.status_code, code_of(answer)) == (404, "not_found")
        assert release not in visitor.get("/dashboard/releases").text


def test_a_calibrated_release_shows_both_intervals(house: House, browse: Open, owner: rows.Key) -> None:
    release = _publish(house, owner)
    _grade(house, release, {"grade": "calibrated", "reasons": []})
    page = browse(owner).get(f"/dashboard/releases/{release}").text
    assert find_faults(page) == []
    for words in ("Noise-aware 95 %", "Plain 95 %", "Odds ratio", "sex=Male", 'class="interval"'):
        assert words in page
    assert "Together they give nearly the posterior of the table." in page


def test_intervals_that_do_not_hold_are_left_out(house: House, browse: Open, owner: rows.Key) -> None:
    """W16: a release without calibrated intervals shows none."""
    release, reason = _publish(house, owner), {"code": "hidden-rows", "words": "Noise could hide rows."}
    _grade(house, release, {"grade": "centre-only", "reasons": [reason]})
    page = browse(owner).get(f"/dashboard/releases/{release}").text
    assert "Noise could hide rows." in page
    assert "sex=Male" in page
    for words in ("Plain 95 %", 'class="interval"', " to <", ", 95 %"):
        assert words not in page.partition("<h2>Certificate")[0], words
    _grade(house, release, {"grade": "not-usable", "reasons": [reason]})
    page = browse(owner).get(f"/dashboard/releases/{release}").text
    assert "this release is not usable" in page
    assert "they do not represent the table" in page
    assert "nearly the posterior" not in page
    assert "sex=Male" not in page.partition("<h2>Points")[0]


def test_a_release_of_an_unknown_family_is_readable(house: House, browse: Open, owner: rows.Key) -> None:
    release = _publish(house, owner)
    with house.database.write() as tx:
        row = tx.get_one(Release, release)
        body = {
            **row.body,
            "model": {**row.body["model"], "family": "of-old"},
            "reliability": {"grade": "calibrated", "reasons": []},
        }
        tx.execute(sa.update(Release).where(Release.id == release).values(body=body))
    assert browse(owner).get(f"/dashboard/releases/{release}").status_code == 200


def test_each_check_of_the_certificate_has_a_tick(house: House, browse: Open, owner: rows.Key) -> None:
    """W11: the page does not call an altered release valid."""
    release, browser = _publish(house, owner), browse(owner)
    page = browser.get(f"/dashboard/releases/{release}").text
    assert find_faults(page) == []
    assert (page.count('<li class="passed">'), page.count('<li class="failed">')) == (3, 0)
    with house.database.write() as tx:
        row = tx.get_one(Release, release)
        changed = {**row.certificate, "statement": {**row.certificate["statement"], "method": "psvi"}}
        tx.execute(sa.update(Release).where(Release.id == release).values(certificate=changed))
    page = browser.get(f"/dashboard/releases/{release}").text
    assert (page.count('<li class="passed">'), page.count('<li class="failed">')) == (1, 2)
    assert "Failed: the certificate&#39;s signature is not valid. Do not use this release" in page


def test_a_release_of_public_data_has_no_charge_to_check(house: House, browse: Open, owner: rows.Key) -> None:
    release = _publish(house, owner, sensitivity="public")
    page = browse(owner).get(f"/dashboard/releases/{release}").text
    assert (page.count('<li class="passed">'), page.count('<li class="failed">')) == (2, 0)


def test_points_are_in_the_units_of_the_table(house: House, browse: Open, owner: rows.Key) -> None:
    release = _publish(house, owner)
    browser = browse(owner)
    points = browser.get(f"/v1/releases/{release}/points?format=json").json()
    design = {column["name"]: column["transform"] for column in browser.get(f"/v1/releases/{release}").json()["design"]}
    assert design["age"]["center"] != 0
    shown = (
        browser.get(f"/dashboard/releases/{release}").text.partition('aria-label="Points"')[2].partition("</table>")[0]
    )
    first = re.findall(r'<td class="number">(.*?)</td>', shown)[: len(points["columns"])]
    for name, value, cell in zip(points["columns"], points["rows"][0], first, strict=True):
        transform = design.get(name, {})
        wanted = transform.get("center", 0.0) + transform.get("scale", 1.0) * value
        assert cell == format_number(wanted), name


def test_the_numbers_of_a_release_are_computed_once(
    house: House, browse: Open, owner: rows.Key, monkeypatch: pytest.MonkeyPatch
) -> None:
    release, browser = _publish(house, owner), browse(owner)
    first = browser.get(f"/dashboard/releases/{release}").text
    monkeypatch.setattr("app.dashboard.pages.releases.read_points", None)
    assert browser.get(f"/dashboard/releases/{release}").text == first


def test_lists_name_datasets_only_to_those_who_see_them(
    house: House, pages: FastAPI, browse: Open, owner: rows.Key, analyst: rows.Key
) -> None:
    """A public release does not name its dataset."""
    release = _publish(house, owner, name="census of 1994")
    with open_browser(pages) as visitor:
        for each in (visitor, browse(analyst)):
            page = each.get("/dashboard/releases").text
            assert (release in page, "census of 1994" in page) == (True, False)
    for path in ("/dashboard/releases", "/dashboard/jobs"):
        assert "census of 1994" in browse(owner).get(path).text


def test_a_certificate_in_words_states_cost_and_limit() -> None:
    statement = {
        "unit": {"kind": "column", "column": "person"},
        "slots": 5000,
        "sampling_rate": 0.1,
        "noise_multiplier": 2.5,
        "iterations": 40,
        "privacy": {"epsilon": 0.5, "delta": 1e-6},
        "accountant": "rdp",
        "account": {"limit": {"epsilon": 2.0, "delta": 1e-6}, "sequence": 7, "checkpoint": {"sequence": 3}},
    }
    words = " ".join(describe_certificate(statement))
    for part in (
        "all rows with one value of person",
        "5,000 slots",
        "probability 0.1",
        "ε 0.5",
        "1.7 : 1",
        "ε 2",
        "entry 7",
    ):
        assert part in words


@pytest.mark.parametrize("statement", [{}, {"privacy": None}])
def test_public_data_has_no_guarantee_in_words(statement: dict[str, Any]) -> None:
    assert describe_certificate(statement) == [
        "The data is public, so this release has no privacy cost and no guarantee."
    ]
