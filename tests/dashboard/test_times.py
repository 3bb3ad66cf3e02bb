"""Times: in the reader's time zone and in UTC, or only in UTC without scripts."""

from datetime import UTC, datetime
from typing import Final

import pytest
import sqlalchemy as sa

from app.dashboard.policies import POLICY, TIMED_POLICY
from app.datasets.models import Dataset
from support.chromium import Page
from tests.dashboard.appearance import check_appearance
from tests.dashboard.conftest import Open, Visit
from tests.factories import rows
from tests.factories.worker import House

TIME: Final = "document.querySelector('main time')"


def _move(page: Page, zone: str, language: str) -> None:
    """Put the reader into a time zone, with a language."""
    page.call("Emulation.setTimezoneOverride", timezoneId=zone)
    page.call("Emulation.setLocaleOverride", locale=language)
    page.open(page.run("location.href"))


@pytest.mark.process
@pytest.mark.browser
@pytest.mark.long
@pytest.mark.parametrize(
    ("zone", "language", "local"),
    [
        ("Asia/Tokyo", "en-GB", "1 Jan 2030, 07:30"),
        ("America/New_York", "de-DE", "31.12.2029, 17:30"),
    ],
)
def test_times_are_local_with_utc_in_brackets(
    house: House, visit: Visit, owner: rows.Key, zone: str, language: str, local: str
) -> None:
    dataset = house.ready_dataset(owner)
    _declare_at(house, dataset, datetime(2029, 12, 31, 22, 30, tzinfo=UTC))
    page = visit(owner, f"/dashboard/datasets/{dataset}")
    _move(page, zone, language)
    assert page.run(f"{TIME}.textContent") == f"{local} (2029-12-31 22:30 UTC)"
    assert page.run(f"{TIME}.dateTime") == "2029-12-31T22:30:00Z"
    assert zone in page.run("document.getElementById('zone').textContent")
    check_appearance(page)


def _declare_at(house: House, dataset: str, at: datetime) -> None:
    with house.database.write() as tx:
        tx.execute(sa.update(Dataset).where(Dataset.id == dataset).values(created_at=at))


@pytest.mark.process
@pytest.mark.browser
@pytest.mark.long
def test_times_of_parts_that_arrive_later_are_local_too(house: House, visit: Visit, owner: rows.Key) -> None:
    job = house.job(house.ready_dataset(owner), owner)
    page = visit(owner, f"/dashboard/jobs/{job}")
    house.run(job)
    page.wait("document.querySelector('#job-facts').innerText.includes('Ended')")
    assert page.run("[...document.querySelectorAll('main time')].every(each => each.querySelector('.utc'))")


@pytest.mark.process
@pytest.mark.browser
@pytest.mark.long
def test_times_without_scripts_are_in_utc(house: House, visit: Visit, owner: rows.Key) -> None:
    page = visit(owner, f"/dashboard/datasets/{house.ready_dataset(owner)}", scripts=False)
    assert page.run(f"{TIME}.textContent.length") == len("2030-01-01 00:00")
    assert "All times are in UTC." in page.run("document.body.innerText")


def test_only_pages_with_times_have_the_script_and_it_sends_nothing(
    house: House, browse: Open, owner: rows.Key
) -> None:
    browser, dataset = browse(owner), house.ready_dataset(owner)
    for path, policy in ((f"/dashboard/datasets/{dataset}", TIMED_POLICY), ("/dashboard/price", POLICY)):
        answer = browser.get(path)
        assert answer.headers["content-security-policy"] == policy
        assert ("/times." in answer.text) == (policy == TIMED_POLICY)
    assert "connect-src" not in TIMED_POLICY
    assert "script-src" not in POLICY
