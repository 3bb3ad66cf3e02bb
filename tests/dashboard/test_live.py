"""Pages follow jobs without a reload, and link to themselves without scripts."""

from dataclasses import replace
from datetime import timedelta
from typing import Final

import pytest
import sqlalchemy as sa

from app.auth.models import SignIn
from app.auth.sign_ins import IDLE
from app.dashboard.visitors import REFRESH_HEADER
from app.db import BackgroundWriter, now
from app.main import create_app
from app.services import Services
from support.chromium import Page
from tests.dashboard.appearance import check_appearance
from tests.dashboard.browser import open_browser
from tests.dashboard.conftest import Open, Visit
from tests.factories import rows
from tests.factories.tampering import table
from tests.factories.worker import House

MARK: Final = "window.isSamePage = true"
IS_SAME: Final = "window.isSamePage === true"
FOLLOWS: Final = "document.querySelector('[data-follow]').textContent.includes('by itself')"


@pytest.fixture
def dataset(house: House, owner: rows.Key) -> str:
    return house.ready_dataset(owner, name="census")


def _advance(house: House, job: str, steps: int) -> None:
    """Let a running job have done some of its steps."""
    with house.database.write() as tx:
        jobs = table("jobs")
        values = {"status": "running", "stage": "running", "steps_done": steps, "steps_planned": 10}
        tx.execute(sa.update(jobs).where(jobs.c.id == job).values(values))


def _restart(house: House, job: str) -> None:
    with house.database.write() as tx:
        jobs = table("jobs")
        tx.execute(sa.update(jobs).where(jobs.c.id == job).values(status="queued", stage="queued", steps_done=0))


def _count_requests(page: Page) -> int:
    return len(page.requests())


@pytest.mark.process
@pytest.mark.browser
@pytest.mark.long
def test_the_page_of_a_job_follows_it_to_its_release(house: House, visit: Visit, owner: rows.Key, dataset: str) -> None:
    job = house.job(dataset, owner)
    page = visit(owner, f"/dashboard/jobs/{job}")
    page.run(MARK)
    page.wait(FOLLOWS)
    _advance(house, job, 4)
    page.wait("document.querySelector('#job-facts').innerText.includes('40 % of the planned steps')")
    assert page.run("document.querySelector('progress').value") == 0.4
    assert page.run("document.querySelector('[data-news]').textContent") == "The state is now: Running"
    check_appearance(page)
    page.run("document.querySelector('#job-facts dd a').focus()")
    _restart(house, job)
    house.run(job)
    page.wait("document.querySelector('#job-facts').innerText.includes('Open the release')")
    assert page.run(IS_SAME)
    assert page.run("document.querySelector('#job-cancel').innerText.trim()") == ""
    assert page.run("document.activeElement.closest('#job-facts') !== null")
    assert page.run("document.querySelector('[data-follow]').textContent") == "All jobs of this page have ended."
    page.clear()
    page.run("new Promise(resolve => setTimeout(resolve, 2500))")
    assert _count_requests(page) == 0
    assert page.faults() == []


@pytest.mark.process
@pytest.mark.browser
@pytest.mark.long
def test_the_lists_of_jobs_follow_them(house: House, visit: Visit, owner: rows.Key, dataset: str) -> None:
    job = house.job(dataset, owner)
    paths = (f"/dashboard/datasets/{dataset}", "/dashboard/jobs", "/dashboard/jobs?status=queued")
    pages = [visit(owner, path) for path in paths]
    for page in pages:
        page.run(MARK)
        page.wait(FOLLOWS)
    house.run(job)
    for page, words in zip(pages, ("Succeeded", "Succeeded", "No job matches"), strict=True):
        page.wait(f"document.querySelector('#job-list').innerText.includes('{words}')")
        assert page.run(IS_SAME)
    assert pages[0].run("document.querySelectorAll('#release-list li').length") == 1


@pytest.mark.process
@pytest.mark.browser
@pytest.mark.long
def test_a_page_that_is_signed_out_stops(house: House, visit: Visit, owner: rows.Key, dataset: str) -> None:
    page = visit(owner, f"/dashboard/jobs/{house.job(dataset, owner)}")
    page.call("Network.clearBrowserCookies")
    page.wait("document.querySelector('[data-follow]').textContent.startsWith('You are signed out')")
    page.clear()
    page.run("new Promise(resolve => setTimeout(resolve, 2500))")
    assert _count_requests(page) == 0


def test_a_page_without_scripts_links_to_itself(house: House, browse: Open, owner: rows.Key, dataset: str) -> None:
    job, browser = house.job(dataset, owner), browse(owner)
    paths = (f"/dashboard/jobs/{job}", f"/dashboard/datasets/{dataset}", "/dashboard/jobs")
    for path in paths:
        assert "data-follow>" in (html := browser.get(path).text)
        assert f'<a href="{path}">look again</a>' in html
    house.run(job)
    for path in paths:
        html = browser.get(path).text
        assert "look again" not in html
        assert "live." not in html


@pytest.mark.parametrize(("headers", "is_noted"), [({REFRESH_HEADER: "1"}, False), ({}, True)])
def test_a_page_that_follows_does_not_prolong_its_session(
    services: Services, owner: rows.Key, headers: dict[str, str], is_noted: bool
) -> None:
    background, used = BackgroundWriter(services.database), now() - IDLE + timedelta(minutes=1)
    with open_browser(create_app(replace(services, background=background)), owner) as browser:
        with services.database.write() as tx:
            tx.execute(sa.update(SignIn).values(last_used_at=used))
        assert browser.get("/dashboard/jobs", headers=headers).status_code == 200
    background.finish()
    background.close()
    with services.database.read() as session:
        assert (session.scalars(sa.select(SignIn.last_used_at)).one() > used) == is_noted
