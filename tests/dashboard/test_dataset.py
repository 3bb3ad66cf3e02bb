"""The pages of a dataset and of its jobs."""

import pytest

from app.db import now
from tests.dashboard.conftest import Open
from tests.dashboard.html_checks import find_faults, remove_scripts
from tests.factories import rows
from tests.factories.worker import House, job_body

HOSTILE = "<script>alert('x')</script>"
EMPTY = {"": ""}


def _reject(house: House, dataset: str) -> None:
    with house.database.write() as tx:
        rows.content(
            tx,
            dataset,
            version=2,
            status="rejected",
            rejection="missing_column",
            rejection_columns=["wages"],
            ended_at=now(),
        )


def test_declared_facts_are_shown_and_escaped(house: House, browse: Open, owner: rows.Key) -> None:
    columns = [{"name": "sex", "type": "categorical", "categories": [HOSTILE, "Male"]}, *rows.COLUMNS[:2]]
    dataset = house.ready_dataset(owner, name=HOSTILE, description=HOSTILE, columns=columns)
    page = browse(owner).get(f"/dashboard/datasets/{dataset}").text
    assert "<script" not in remove_scripts(page)[0]
    assert page.count("&lt;script&gt;") >= 4
    for words in ("17 to 90", "replaced by 38", "1,000", "one row"):
        assert words in page


@pytest.mark.parametrize(
    ("lower", "upper", "words"),
    [
        (20200101, 20241231, "20200101 to 20241231"),
        (-1234.5678901, 0.1, "-1234.5678901 to 0.1"),
        (0.0, 2.5e17, "0 to 2.5e+17"),
    ],
)
def test_bounds_are_shown_as_declared(
    house: House, browse: Open, owner: rows.Key, lower: float, upper: float, words: str
) -> None:
    column = {"name": "day", "type": "real", "lower": lower, "upper": upper}
    with house.database.write() as tx:
        dataset = rows.dataset(tx, owner.id, sensitivity="public", columns=[column]).id
    assert f'<td data-label="Declared values">{words}</td>' in browse(owner).get(f"/dashboard/datasets/{dataset}").text


@pytest.mark.parametrize("role", ["analyst", "auditor", "admin"])
def test_only_its_owner_sees_the_state_of_uploads(house: House, browse: Open, owner: rows.Key, role: str) -> None:
    """W3: the outcome of an upload depends on private rows."""
    with house.database.write() as tx:
        other = rows.api_key(tx, role)
    shared = (other.id,) if role == "analyst" else ()
    dataset = house.ready_dataset(owner, shared_with=shared)
    before = browse(other).get(f"/dashboard/datasets/{dataset}").text
    _reject(house, dataset)
    page = browse(other).get(f"/dashboard/datasets/{dataset}").text
    assert page == before
    for word in ("Rejected", "missing_column", "wages", "Your table", "Newest upload"):
        assert word not in page
    own = browse(owner).get(f"/dashboard/datasets/{dataset}").text
    assert all(word in own for word in ("Rejected", "missing_column", "wages", "A declared column is missing."))


def test_a_dataset_without_a_table_looks_the_same_for_all_reasons(
    house: House, browse: Open, owner: rows.Key, analyst: rows.Key
) -> None:
    with house.database.write() as tx:
        dataset = rows.dataset(tx, owner.id, shared_with=(analyst.id,), sensitivity="public").id
    before = browse(analyst).get(f"/dashboard/datasets/{dataset}").text
    _reject(house, dataset)
    assert browse(analyst).get(f"/dashboard/datasets/{dataset}").text == before


def test_analysts_see_their_jobs_and_owners_all(house: House, browse: Open, owner: rows.Key, analyst: rows.Key) -> None:
    dataset = house.ready_dataset(owner, shared_with=(analyst.id,))
    mine, theirs = house.job(dataset, analyst), house.job(dataset, owner)
    for place in (f"/dashboard/datasets/{dataset}", "/dashboard/jobs"):
        page = browse(analyst).get(place).text
        assert (mine in page, theirs in page) == (True, False)
        page = browse(owner).get(place).text
        assert (mine in page, theirs in page) == (True, True)


def test_lists_of_jobs_name_submitters_and_purposes(
    house: House, browse: Open, owner: rows.Key, analyst: rows.Key, auditor: rows.Key
) -> None:
    dataset = house.ready_dataset(owner, shared_with=(analyst.id,))
    house.job(dataset, analyst)
    browser = browse(owner)
    answer = browser.post("/v1/jobs", json=job_body(dataset, purpose="Table <2>"), headers=owner.headers)
    assert answer.status_code == 202
    for place in (f"/dashboard/datasets/{dataset}", "/dashboard/jobs"):
        page = browse(owner).get(place).text
        assert find_faults(page) == []
        assert page.count('<td data-label="By">you</td>') == page.count('<td data-label="By">a key</td>') == 1
        assert '</a> <span class="soft">Table &lt;2&gt;</span></th>' in page
        page = browse(analyst).get(place).text
        assert page.count('<td data-label="By">you</td>') == 1
        assert "Table &lt;2&gt;" not in page
        assert browse(auditor).get(place).text.count('<td data-label="By">a key</td>') == 2


def test_the_owner_of_a_dataset_is_named_to_others(
    house: House, browse: Open, owner: rows.Key, analyst: rows.Key, auditor: rows.Key
) -> None:
    dataset = house.ready_dataset(owner, shared_with=(analyst.id,))
    for key in (analyst, auditor):
        assert "<dt>Owner</dt><dd>a key</dd>" in browse(key).get(f"/dashboard/datasets/{dataset}").text
        assert " · owner a key" in browse(key).get("/dashboard").text
    assert "<dt>Owner</dt>" not in browse(owner).get(f"/dashboard/datasets/{dataset}").text
    assert " · owner" not in browse(owner).get("/dashboard").text


def test_jobs_can_be_filtered_by_state(house: House, browse: Open, owner: rows.Key) -> None:
    dataset = house.ready_dataset(owner)
    house.run(done := house.job(dataset, owner))
    waiting = house.job(dataset, owner)
    page = browse(owner).get("/dashboard/jobs", params={"status": "queued"}).text
    assert (done in page, waiting in page) == (False, True)
    assert browse(owner).get("/dashboard/jobs", params={"status": "other"}).status_code == 422


def test_a_job_states_its_charge_and_its_release(house: House, browse: Open, owner: rows.Key) -> None:
    dataset = house.ready_dataset(owner)
    house.run(done := house.job(dataset, owner))
    page = browse(owner).get(f"/dashboard/jobs/{done}").text
    assert "The release was published, so the full price was charged." in page
    assert f"/dashboard/releases/{house.read(done).release_id}" in page
    assert "Cancel this job" not in page


def test_lists_show_what_ended_jobs_were_charged(house: House, browse: Open, owner: rows.Key) -> None:
    job, browser = house.job(dataset := house.ready_dataset(owner), owner), browse(owner)
    places, cell = (f"/dashboard/datasets/{dataset}", "/dashboard/jobs"), '<td class="number" data-label="Cost ε">'
    reserved = [browser.get(place).text.partition(cell)[2].partition("<")[0] for place in places]
    assert reserved[0] == reserved[1] != "0"
    assert browser.post(f"/dashboard/jobs/{job}/cancel", data=EMPTY).status_code == 303
    for place in places:
        assert f"{cell}0</td>" in browser.get(place).text
    house.run(house.job(dataset, owner))
    for place in places:
        assert f"{cell}{reserved[0]}</td>" in browser.get(place).text


def test_a_job_can_be_cancelled_by_a_form(house: House, browse: Open, owner: rows.Key, auditor: rows.Key) -> None:
    job = house.job(house.ready_dataset(owner), owner)
    assert "Cancel this job" not in browse(auditor).get(f"/dashboard/jobs/{job}").text
    browser = browse(owner)
    assert "Cancel this job" in browser.get(f"/dashboard/jobs/{job}").text
    answer = browser.post(f"/dashboard/jobs/{job}/cancel", data=EMPTY, headers={"Sec-Fetch-Site": "cross-site"})
    assert (answer.status_code, house.read(job).status) == (403, "queued")
    answer = browser.post(f"/dashboard/jobs/{job}/cancel", data=EMPTY)
    assert (answer.status_code, answer.headers["location"]) == (303, f"/dashboard/jobs/{job}")
    assert house.read(job).status == "cancelled"
    assert house.charge(job) == "voided"
