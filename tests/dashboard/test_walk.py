"""The whole way of a person with a browser alone, by keyboard: from the sign-in to the deletion of a dataset."""

import random
from pathlib import Path
from typing import Any, Final

import pytest

from support.chromium import Chromium, Page
from tests.factories import rows
from tests.factories.worker import House

pytestmark = [pytest.mark.process, pytest.mark.browser]
NAME: Final = "Clinic visits"
KINDS: Final = ("Whole", "Category", "Yes")
COLUMNS: Final[list[dict[str, Any]]] = [
    {"name": "age", "type": "integer", "lower": 18, "upper": 90},
    {"name": "sex", "type": "categorical", "categories": ["female", "male"]},
    {"name": "sick", "type": "binary"},
]
LOADED: Final = "document.readyState === 'complete'"
STATUS: Final = "document.getElementById('status').textContent"
MAIN: Final = "document.querySelector('main').innerText"
FIGURES: Final = "[...document.querySelectorAll('.amounts dd')].map((it) => Number(it.textContent.slice(2)))"


@pytest.fixture
def table(tmp_path: Path) -> Path:
    """Write a table of 1,800 made-up rows."""
    draw = random.Random(5)
    lines = ["age,sex,sick"]
    for _ in range(1_800):
        age = draw.randint(18, 90)
        lines.append(f"{age},{draw.choice(('female', 'male'))},{int(draw.random() < age / 120)}")
    (tmp_path / "visits.csv").write_text("\n".join([*lines, ""]))
    return tmp_path / "visits.csv"


class Person:
    """A person with a keyboard, on one page after the other."""

    def __init__(self, page: Page, address: str) -> None:
        self.page, self.address = page, address

    def follow(self, words: str) -> None:
        """Follow a link, or press a button, and wait for the next page."""
        self.reach(f"['A', 'BUTTON'].includes(it.tagName) && it.innerText.trim().startsWith({words!r})")
        before = self.page.run("performance.timeOrigin")
        self.page.press("Enter")
        self.page.wait(f"performance.timeOrigin !== {before} && {LOADED}")

    def reach(self, condition: str) -> None:
        """Press Tab until the focus is on an element that fulfils a condition."""
        self.page.tab_to(condition, most=200)

    def type(self, field: str, text: str) -> None:
        """Replace the text of a field."""
        self.reach(f"it.id === '{field}'")
        self.page.run("document.activeElement.select()")
        self.page.type(text)

    def choose(self, field: str, words: str) -> None:
        """Choose an option with the arrow."""
        self.reach(f"it.id === '{field}'")
        chosen = f"document.getElementById('{field}').selectedOptions[0].text.startsWith('{words}')"
        for _ in range(30):
            if self.page.run(chosen):
                return
            self.page.press("ArrowDown")
        raise AssertionError(words)

    def read(self) -> str:
        return str(self.page.run(MAIN))

    def sign_in(self, secret: str) -> None:
        self.page.open(f"{self.address}/dashboard")
        assert self.page.run("location.pathname") == "/dashboard/sign-in"
        for key, words in (("cv_wrong", "There is a problem"), (secret, "no dataset yet")):
            self.type("key", key)
            self.page.press("Enter")
            self.page.wait(f"{LOADED} && {MAIN}.includes('{words}')")

    def declare(self, table: Path) -> None:
        self.follow("Declare a dataset")
        self.page.choose_file("#header-file", table)
        self.page.wait("document.getElementById('from-file-outcome').textContent.startsWith('3 names')")
        for field, text in (("name", NAME), ("slots", "2000"), ("epsilon", "2")):
            self.type(field, text)
        bounds = {0: {"lower": "18", "upper": "90"}, 1: {"categories": "female\nmale"}}
        for index, kind in enumerate(KINDS):
            self.choose(f"column-{index}-type", kind)
            for field, text in bounds.get(index, {}).items():
                self.type(f"column-{index}-{field}", text)
        self.follow("Declare the dataset")

    def upload(self, table: Path, house: House) -> None:
        self.page.wait("!document.getElementById('uploader').hidden")
        self.page.choose_file("#file", table)
        self.page.wait(f"{STATUS}.startsWith('The check is done')")
        self.reach("it.id === 'start'")
        self.page.press("Enter")
        self.page.wait(f"{STATUS}.startsWith('All bytes are stored')")
        house.work()
        self.page.wait("document.activeElement.textContent === 'Go to the dataset'")
        self.page.press("Enter")
        self.page.wait(f"{LOADED} && document.querySelector('#job-list')")

    def quote(self, epsilon: str) -> None:
        """Ask for the price of a job, from the page of the dataset."""
        self.follow("Price a job")
        if not self.page.run("document.getElementById('target')"):
            self.follow(NAME)
        self.choose("target", "sick")
        for feature in ("age", "sex"):
            self.reach(f"it.value === '{feature}'")
            self.page.press("Space")
        self.choose("goal", "the cost;")
        self.type("epsilon", epsilon)
        self.follow("Show the price")

    def see_release(self, house: House, *, scripts: bool) -> None:
        """Follow a job to its release."""
        assert "reserved" in self.read()
        assert "Waiting" in self.read()
        house.work()
        if scripts:
            self.page.wait(f"{MAIN}.includes('Open the release')")
        else:
            self.follow("look again")
        self.follow("Open the release")
        for words in ("Certificate", "Protected is one row", "Weights", "points as csv"):
            assert words in self.read()

    def download(self, folder: Path) -> str:
        """Download the points, and return them."""
        self.page.allow_downloads(folder)
        self.reach("it.innerText === 'points as csv'")
        self.page.press("Enter")
        return self.page.wait_for_download(folder).read_text()

    def delete(self) -> None:
        self.follow("Budgets")
        self.follow("Declaration, jobs and releases")
        self.follow("Delete this dataset")
        for name, words in (("another", "There is a problem"), (NAME, "Deleted at")):
            self.type("confirmed_name", name)
            self.follow("Delete this dataset")
            assert words in self.read()
        assert "Download the signed receipt" in self.read()


def _upload_by_api(house: House, owner: rows.Key, table: Path) -> None:
    body = {"name": NAME, "sensitivity": "private", "columns": COLUMNS, "privacy_unit": {"kind": "row"}}
    budget = {"epsilon": 2.0, "delta": 1e-6}
    with house.client() as client:
        stated = body | {"slots": 2_000, "budget": budget}
        answer = client.post("/v1/datasets", json=stated, headers=owner.headers)
        assert answer.status_code == 201, answer.text
        place = f"/v1/datasets/{answer.json()['id']}/content"
        headers = {**owner.headers, "Content-Type": "text/csv"}
        assert client.put(place, content=table.read_bytes(), headers=headers).status_code == 202
    house.work()


@pytest.mark.parametrize(("width", "scheme", "forced"), [(1440, "light", "none"), (360, "dark", "active")])
@pytest.mark.parametrize("scripts", [True, False], ids=["scripts", "without scripts"])
def test_a_person_with_a_browser_alone_does_everything(
    house: House,
    chromium: Chromium,
    address: str,
    owner: rows.Key,
    table: Path,
    tmp_path: Path,
    width: int,
    scheme: str,
    forced: str,
    scripts: bool,
) -> None:
    """Only the upload of the table needs scripts."""
    page = Page(chromium, scripts=scripts)
    page.resize(width, scheme=scheme, forced=forced)
    person = Person(page, address)
    person.sign_in(owner.secret)
    if scripts:
        person.declare(table)
        person.upload(table, house)
    else:
        _upload_by_api(house, owner, table)
        person.follow("Budgets")
        person.follow("Declaration, jobs and releases")
    person.follow("Budgets")
    spent, _, limit, left = page.run(FIGURES)
    assert (spent, limit) == (0, 2)
    person.quote("0.6")
    assert "The budget covers this job" in person.read()
    person.follow("Submit this job")
    person.see_release(house, scripts=scripts)
    points = person.download(tmp_path / "downloads")
    assert points.startswith("age,sex=male,intercept,y,weight")
    person.follow("Budgets")
    after, reserved, _, left_after = page.run(FIGURES)
    assert 0 < after <= 0.6
    assert (reserved, left_after < left) == (0, True)
    person.quote("1.99")
    assert "The budget does not cover this job" in person.read()
    assert not page.run("document.querySelector('form[action$=\"/jobs\"]')")
    person.delete()
    assert page.faults() == []
    person.follow("Sign out")
    page.open(f"{address}/dashboard")
    assert page.run("location.pathname") == "/dashboard/sign-in"
