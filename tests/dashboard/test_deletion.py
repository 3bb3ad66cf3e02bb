"""Deletion of a dataset by a form, and files of private releases."""

import json

import pytest
from fastapi import FastAPI

from tests.dashboard.browser import open_browser
from tests.dashboard.conftest import Open
from tests.dashboard.html_checks import find_faults
from tests.factories import rows
from tests.factories.worker import House

NAME = "Visits “2024”"


@pytest.fixture
def dataset(house: House, owner: rows.Key) -> str:
    return house.ready_dataset(owner, name=NAME, releases_public=False)


def _read(house: House, owner: rows.Key, dataset: str) -> str:
    with house.client() as client:
        return str(client.get(f"/v1/datasets/{dataset}", headers=owner.headers).json()["status"])


def test_a_dataset_is_deleted_after_its_name(house: House, browse: Open, owner: rows.Key, dataset: str) -> None:
    browser, place = browse(owner), f"/dashboard/datasets/{dataset}"
    assert f"{place}/delete" in browser.get(place).text
    page = browser.get(f"{place}/delete").text
    assert NAME in page
    assert find_faults(page) == []
    assert browser.get(f"{place}/receipt").status_code == 404
    answer = browser.post(f"{place}/delete", data={"confirmed_name": NAME})
    assert (answer.status_code, answer.headers["location"]) == (303, place)
    page = browser.get(place).text
    assert f"{place}/receipt" in page
    assert f"{place}/delete" not in page
    receipt = browser.get(f"{place}/receipt")
    assert receipt.headers["content-disposition"].startswith("attachment")
    with house.client() as client:
        assert receipt.json() == client.delete(f"/v1/datasets/{dataset}", headers=owner.headers).json()
    assert browser.get(f"{place}/delete").headers["location"] == place
    assert _read(house, owner, dataset) == "deleted"


@pytest.mark.parametrize("typed", ["", "visits", NAME.lower()])
def test_another_name_deletes_nothing(house: House, browse: Open, owner: rows.Key, dataset: str, typed: str) -> None:
    answer = browse(owner).post(f"/dashboard/datasets/{dataset}/delete", data={"confirmed_name": typed})
    assert answer.status_code == 422
    assert f'value="{typed}"' in answer.text
    assert "exactly as it is shown" in answer.text
    assert _read(house, owner, dataset) == "ready"


def test_blanks_of_a_name_are_typed_as_a_browser_shows_them(house: House, browse: Open, owner: rows.Key) -> None:
    dataset = house.ready_dataset(owner, name="two  blanks")
    browser, place = browse(owner), f"/dashboard/datasets/{dataset}"
    assert browser.post(f"{place}/delete", data={"confirmed_name": "two blanks"}).status_code == 303
    assert _read(house, owner, dataset) == "deleted"


def test_a_form_of_another_site_deletes_nothing(house: House, browse: Open, owner: rows.Key, dataset: str) -> None:
    answer = browse(owner).post(
        f"/dashboard/datasets/{dataset}/delete",
        data={"confirmed_name": NAME},
        headers={"Sec-Fetch-Site": "cross-site"},
    )
    assert answer.status_code == 403
    assert _read(house, owner, dataset) == "ready"


def test_files_of_a_private_release_need_a_session(
    house: House, pages: FastAPI, browse: Open, owner: rows.Key, dataset: str
) -> None:
    house.run(job := house.job(dataset, owner))
    release, browser = house.read(job).release_id, browse(owner)
    page = browser.get(f"/dashboard/releases/{release}").text
    with house.client() as client, open_browser(pages) as stranger:
        for part, names in (("points", ("json", "csv", "parquet", "npz")), ("belief", ("json", "npz"))):
            for name in names:
                address = f"/dashboard/releases/{release}/files/{part}.{name}"
                stated = client.get(f"/v1/releases/{release}/{part}?format={name}", headers=owner.headers)
                answer = browser.get(address)
                assert (answer.status_code == 200) == (address in page) == (stated.status_code == 200), address
                assert answer.status_code == 404 or answer.content == stated.content
                assert stranger.get(address).status_code == 404
        stated = client.get(f"/v1/releases/{release}/certificate", headers=owner.headers)
    address = f"/dashboard/releases/{release}/files/certificate.json"
    assert address in page
    assert browser.get(address).json() == json.loads(stated.text)
    assert browser.get(f"/dashboard/releases/{release}/files/points.exe").status_code == 404
