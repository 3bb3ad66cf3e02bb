"""The form of a declaration, without scripts."""

import re
from html import unescape
from typing import Any

import httpx
import pytest

from app.dashboard.declaration_form import DeclarationForm, make_body
from app.datasets.schemas import EXAMPLE_DECLARATION, DatasetBody
from tests.dashboard.conftest import Open, Visit
from tests.factories import rows
from tests.factories.worker import House

HOSTILE = "<b>\"'&"
FILLED = {
    "once": "k" * 32,
    "name": "adult",
    "sensitivity": "private",
    "population": "census-1994",
    "unit": "row",
    "slots": "33000",
    "epsilon": "2.0",
    "delta": "1e-6",
    "releases": "public",
    "column-0-name": "age",
    "column-0-type": "integer",
    "column-0-lower": "17",
    "column-0-upper": "90",
    "column-0-impute": "38",
    "column-1-name": "hours",
    "column-1-type": "real",
    "column-1-lower": "1",
    "column-1-upper": "99",
    "column-5-name": "sex",
    "column-5-type": "categorical",
    "column-5-categories": "Female\r\n\r\n Male \r\n",
    "column-7-name": "income_gt_50k",
    "column-7-type": "binary",
}


def _declare(browser: httpx.Client, **changes: str) -> httpx.Response:
    return browser.post("/dashboard/declare", data={**FILLED, "action": "declare", **changes})


def _summary(page: str) -> dict[str, str]:
    """The messages of the error summary, by the field that each links to."""
    block = page.partition('class="error-summary"')[2].partition("</div>")[0]
    return {name: unescape(words) for name, words in re.findall(r'<li><a href="#([^"]+)">([^<]+)</a></li>', block)}


def test_a_filled_form_declares_what_the_api_would(house: House, browse: Open, owner: rows.Key) -> None:
    answer = _declare(browse(owner))
    assert answer.status_code == 303, _summary(answer.text)
    place = answer.headers["location"]
    assert place.endswith("/upload?declared=1")
    with house.client() as client:
        dataset = client.get(f"/v1/datasets/{place.split('/')[3]}", headers=owner.headers).json()
    for name in ("name", "sensitivity", "population", "columns", "privacy_unit", "slots", "budget", "releases_public"):
        assert dataset[name] == EXAMPLE_DECLARATION[name], name
    page = browse(owner).get(place)
    assert "adult is declared." in page.text.replace("</strong>", "").replace("<strong>", "")


def test_a_column_with_a_name_of_releases_is_warned_about(browse: Open, owner: rows.Key) -> None:
    browser = browse(owner)
    answer = _declare(browser, **{"column-7-name": "weight"})
    assert answer.status_code == 303, _summary(answer.text)
    page = browser.get(answer.headers["location"]).text
    assert '<strong class="wraps">weight</strong>: Releases have a column of this name' in page


def test_a_block_of_a_series_is_declared_and_shown(house: House, browse: Open, owner: rows.Key) -> None:
    browser = browse(owner)
    person = {f"column-8-{name}": value for name, value in (("type", "integer"), ("lower", "0"), ("upper", "9"))}
    unit = {"unit": "column", "unit_column": "who", "max_rows": "2", "column-8-name": "who"}
    answer = _declare(browser, population="", series="visits <1>", **unit, **person)
    assert answer.status_code == 303, _summary(answer.text)
    dataset_id = answer.headers["location"].split("/")[3]
    with house.client() as client:
        assert client.get(f"/v1/datasets/{dataset_id}", headers=owner.headers).json()["series"] == "visits <1>"
    assert "visits &lt;1&gt;: each person counts once" in browser.get(f"/dashboard/datasets/{dataset_id}").text


def test_columns_are_added_and_removed_by_posts(browse: Open, owner: rows.Key) -> None:
    browser = browse(owner)
    page = browser.post("/dashboard/declare", data={**FILLED, "action": "add"}).text
    assert len(re.findall(r'<fieldset class="column">', page.partition("<template")[0])) == 5
    assert re.search(r'id="column-4-name"[^>]* autofocus', page) is not None
    assert page.partition("<template")[0].count('value="hours"') == 1
    page = browser.post("/dashboard/declare", data={**FILLED, "action": "remove-1"}).text
    assert 'value="hours"' not in page
    assert 'id="column-2-name" name="column-2-name" value="income_gt_50k"' in page


@pytest.mark.parametrize(
    ("changes", "field", "words"),
    [
        ({"name": ""}, "name", "Enter a name"),
        ({"slots": "33,000"}, "slots", "Slots: enter a whole number"),
        ({"slots": "0"}, "slots", "Slots: use a number of at least 1."),
        ({"epsilon": ""}, "epsilon", "Limit on ε: enter a number"),
        ({"epsilon": "nan"}, "epsilon", "Limit on ε: enter a number"),
        ({"epsilon": "-1"}, "epsilon", "Limit on ε"),
        ({"delta": "2"}, "delta", "Limit on δ"),
        ({"unit": "column"}, "unit_column", "Enter the column"),
        ({"unit": "column", "unit_column": "who", "max_rows": "3"}, "unit_column", "must be one of the declared"),
        ({"column-0-name": "2nd"}, "column-0-name", "Column 1 (2nd), name: use a letter"),
        ({"column-1-name": "age"}, "column-0-name", "Two columns have this name".lower()),
        ({"column-0-type": ""}, "column-0-type", "Column 1 (age): choose its type."),
        ({"column-0-lower": "x"}, "column-0-lower", "Column 1 (age), lower bound: enter a whole number"),
        ({"column-0-upper": "3"}, "column-0-upper", "Column 1 (age), upper bound: the upper bound must be greater"),
        ({"column-0-impute": "99"}, "column-0-impute", "within the bounds"),
        ({"column-5-categories": " "}, "column-2-categories", "Column 3 (sex): enter the categories"),
        ({"column-5-categories": "a\na"}, "column-2-categories", "listed twice"),
        ({"column-5-impute": "Other"}, "column-2-impute", "one of the categories"),
        ({"column-7-impute": "2"}, "column-3-impute", "enter 0 or 1"),
        ({"shared_with": "key_unknown0"}, "shared_with", "Shared with"),
        ({"series": "visits"}, "population", "separate populations"),
        ({"series": "visits", "unit": "row"}, "series", "Series: in a series each person counts once"),
        ({"sensitivity": "other"}, "", ""),
    ],
)
def test_a_fault_is_named_and_what_was_typed_is_kept(
    browse: Open, owner: rows.Key, changes: dict[str, str], field: str, words: str
) -> None:
    answer = _declare(browse(owner), description=HOSTILE, **changes)
    assert answer.status_code == 422
    summary = _summary(answer.text)
    if field:
        assert list(summary) == [field] or field in summary
        assert words.lower() in summary[field].lower()
        assert f'id="{field}"' in answer.text
    assert "Error: Declare" in answer.text
    assert "&lt;b&gt;&#34;&#39;&amp;" in answer.text
    assert 'value="census-1994"' in answer.text


def test_a_clash_with_the_population_is_stated(browse: Open, owner: rows.Key) -> None:
    browser = browse(owner)
    assert _declare(browser).status_code == 303
    answer = _declare(browser, delta="1e-7", once="l" * 32)
    assert (answer.status_code, list(_summary(answer.text))) == (422, ["population"])


def test_a_form_that_is_sent_twice_declares_once(house: House, browse: Open, owner: rows.Key) -> None:
    browser = browse(owner)
    first, second = _declare(browser), _declare(browser)
    assert (first.status_code, first.headers["location"]) == (303, second.headers["location"])
    changed = _declare(browser, name="another")
    assert changed.status_code == 422
    assert "with other entries" in changed.text
    assert _declare(browser, once="").status_code == 422
    with house.client() as client:
        assert len(client.get("/v1/datasets", headers=owner.headers).json()["items"]) == 1
    (key,) = re.findall(r'name="once" value="([^"]+)"', changed.text)
    assert _declare(browser, name="another", once=key, population="").status_code == 303


def test_a_form_from_elsewhere_declares_nothing(house: House, browse: Open, owner: rows.Key) -> None:
    browser = browse(owner)
    answer = browser.post("/dashboard/declare", data=FILLED, headers={"Sec-Fetch-Site": "cross-site"})
    assert answer.status_code == 403
    with house.client() as client:
        assert client.get("/v1/datasets", headers=owner.headers).json()["items"] == []


@pytest.mark.process
@pytest.mark.browser
@pytest.mark.long
def test_a_form_that_is_too_large_says_what_to_do_and_is_kept(visit: Visit, owner: rows.Key) -> None:
    page = visit(owner, "/dashboard/declare")
    page.run("document.getElementById('name').value = 'census'")
    page.run("document.getElementById('column-0-categories').value = 'category\\n'.repeat(40_000)")
    page.run("document.querySelector('form.declaration').requestSubmit()")
    page.wait("document.querySelector('main.wide .problem') && document.readyState === 'complete'")
    words = page.run("document.querySelector('main').innerText")
    assert "larger than 256 KiB, so nothing was done" in words
    assert "The Python client and the API accept more." in words
    page.go_back()
    page.wait("document.getElementById('column-0-categories') && document.readyState === 'complete'")
    assert page.run("document.getElementById('name').value") == "census"
    assert page.run("document.getElementById('column-0-categories').value.length") == 360_000


def test_public_data_and_several_rows_of_a_person_have_their_members() -> None:
    form = DeclarationForm(name="x", sensitivity="public", slots="5", epsilon="ignored", releases="private")
    form = form.remove_column(0).add_column()
    body, mistakes = make_body(form)
    assert body is None
    assert set(mistakes.by_field) == {"column-0-name", "column-0-type"}
    person = _column(name="person", type="integer", lower="1", upper="9")
    texts: dict[str, Any] = {"name": "x", "sensitivity": "public", "slots": "5", "columns": (person,)}
    body, mistakes = make_body(DeclarationForm(**texts, unit="column", unit_column="person", max_rows="4"))
    assert isinstance(body, DatasetBody), mistakes.by_field
    assert body.budget is None
    assert body.privacy_unit.model_dump() == {"kind": "column", "column": "person", "max_rows": 4}


def _column(**fields: str) -> Any:
    return type(DeclarationForm().columns[0])(**fields)
