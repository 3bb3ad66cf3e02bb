"""Submitting a job by the form of a quote."""

import html
import json
import re
import shlex

import pytest

from app.dashboard.wording import format_number
from app.inference import expected_accuracy
from tests.dashboard.conftest import Open
from tests.dashboard.html_checks import find_faults
from tests.dashboard.job_forms import make_fields, read_once
from tests.factories import rows
from tests.factories.worker import House


def test_the_command_of_a_quote_submits_the_same_job(
    house: House, browse: Open, analyst: rows.Key, dataset: str
) -> None:
    more = {"terms": "age:sex\r\npoly(hours, 2)", "prior_means": "age:sex = -0.5", "purpose": "Table 2"}
    browser = browse(analyst)
    page = html.unescape(browser.post("/dashboard/price", data=make_fields(dataset, **more)).text)
    commands = re.findall(r"<code>(curl .*?)</code>", page, re.DOTALL)
    [words] = [words for words in map(shlex.split, commands) if words[-1].endswith("/v1/jobs")]
    sent = json.loads(words[words.index("-d") + 1])
    job = browser.post("/v1/jobs", json=sent, headers=analyst.headers).json()
    assert job["purpose"] == "Table 2"
    submitted = browser.post("/dashboard/jobs", data=make_fields(dataset, **more, once="k" * 32))
    other = browser.get(
        f"/v1/jobs/{submitted.headers['location'].rpartition('/')[2].partition('?')[0]}", headers=analyst.headers
    ).json()
    assert other["model"] == job["model"]
    assert (other["size"], other["cost"]) == (job["size"], job["cost"])


def test_a_submitted_form_makes_one_job(house: House, browse: Open, analyst: rows.Key, dataset: str) -> None:
    browser = browse(analyst)
    typed = make_fields(dataset, purpose="Table 2 of Ana's study")
    quoted = browser.post("/dashboard/price", data=typed)
    fields = typed | {"once": read_once(quoted)}
    first, second = (browser.post("/dashboard/jobs", data=fields) for _ in range(2))
    assert (first.status_code, second.status_code) == (303, 303)
    assert first.headers["location"] == second.headers["location"]
    assert len(house.queue.sent) == 1
    commands = re.findall(r"<code>(curl .*?)</code>", html.unescape(quoted.text), re.DOTALL)
    words = next(words for words in map(shlex.split, commands) if "-d" in words)
    assert json.loads(words[words.index("-d") + 1])["purpose"] == "Table 2 of Ana's study"
    assert ', purpose="Table 2 of Ana\'s study")' in html.unescape(quoted.text)
    page = browser.get(first.headers["location"]).text
    assert "Job submitted" in page
    assert "Table 2 of Ana&#39;s study" in page
    assert "logistic regression of income_gt_50k on age, sex" in page
    other = browser.post("/dashboard/jobs", data=fields | {"epsilon": "0.4"})
    assert other.status_code == 409
    assert len(house.queue.sent) == 1


def test_a_submission_is_confirmed_until_the_job_opens_the_data(
    house: House, browse: Open, owner: rows.Key, dataset: str
) -> None:
    browser = browse(owner)
    done, cancelled = (house.job(dataset, owner) for _ in range(2))
    for job in (done, cancelled):
        assert "Its cost is reserved." in browser.get(f"/dashboard/jobs/{job}?submitted=1").text
    house.run(done)
    assert browser.post(f"/dashboard/jobs/{cancelled}/cancel", data={"confirm": "1"}).status_code == 303
    for job in (done, cancelled):
        page = browser.get(f"/dashboard/jobs/{job}?submitted=1").text
        assert "Job submitted" not in page
        assert '<h1 class="sentence">logistic regression' in page
        assert find_faults(page) == []


def test_nothing_is_reserved_for_a_job_on_public_data(house: House, browse: Open, owner: rows.Key) -> None:
    job = house.job(house.ready_dataset(owner, sensitivity="public"), owner)
    page = browse(owner).get(f"/dashboard/jobs/{job}?submitted=1").text
    assert "Its cost is reserved." not in page
    assert "The data is public, so the job costs nothing." in page


def test_the_submitted_cost_has_all_digits_of_the_quoted_one(
    browse: Open, analyst: rows.Key, dataset: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(expected_accuracy, "is_estimated", lambda *_: False)
    page = browse(analyst).post("/dashboard/price", data=make_fields(dataset, epsilon="0.1234564")).text
    form = page.partition('action="/dashboard/jobs"')[2].partition("</form>")[0]
    assert 'name="epsilon" value="0.1234564"' in form


def test_a_job_without_a_cost_is_not_submitted(house: House, browse: Open, analyst: rows.Key, dataset: str) -> None:
    fields = make_fields(dataset, goal="widening", widening="3", once="k" * 32)
    page = browse(analyst).post("/dashboard/jobs", data=fields)
    assert page.status_code == 422
    assert "Show the price first." in page.text
    assert find_faults(page.text) == []
    assert house.queue.sent == []


@pytest.mark.parametrize("once", ["", "short", "x" * 65])
def test_a_form_without_its_key_is_refused(
    house: House, browse: Open, analyst: rows.Key, dataset: str, once: str
) -> None:
    answer = browse(analyst).post("/dashboard/jobs", data=make_fields(dataset, once=once))
    assert answer.status_code == 422
    assert house.queue.sent == []


def test_terms_and_priors_reach_the_job(house: House, browse: Open, analyst: rows.Key, dataset: str) -> None:
    browser = browse(analyst)
    more = {"terms": "age:sex\r\npoly(hours, 2)\nbs(age,4)", "prior_means": "age:sex = -0.5", "prior_scales": "sex=2"}
    typed = make_fields(dataset, features=["sex"], **more)
    quoted = browser.post("/dashboard/price", data=typed)
    assert quoted.status_code == 200, quoted.text.partition("There is a problem")[2].partition("</ul>")[0]
    assert find_faults(quoted.text) == []
    for words in ("sex, age:sex, poly(hours, 2), bs(age,4)", "sex=2; mean age:sex = -0.5, others 0"):
        assert words in quoted.text
    assert "prior_mean={&#34;age:sex&#34;: -0.5}, prior_scales={&#34;sex&#34;: 2.0}" in quoted.text
    changed = browser.post("/dashboard/price", data=typed | {"change": "1"}).text
    assert "<details open>" in changed
    answer = browser.post("/dashboard/jobs", data=typed | {"once": read_once(quoted)})
    assert answer.status_code == 303, answer.text
    model = house.read(answer.headers["location"].rpartition("/")[2].partition("?")[0]).plan["model"]
    terms = [{"interaction": ["age", "sex"]}, {"polynomial": "hours", "degree": 2}]
    assert model["features"][:3] == ["sex", *terms]
    assert model["features"][3]["spline"] == "age"
    assert (model["prior"]["mean"], model["prior"]["scales"]) == ({"age:sex": -0.5}, {"sex": 2.0})


def test_an_empty_number_of_points_is_left_out(house: House, browse: Open, analyst: rows.Key, dataset: str) -> None:
    browser = browse(analyst)
    quoted = browser.post("/dashboard/price", data=make_fields(dataset, size=""))
    assert find_faults(quoted.text) == []
    assert "<dt>Points</dt><dd>20</dd>" in quoted.text
    assert "size=" not in quoted.text.partition("client.jobs.submit")[2].partition("</pre>")[0]
    answer = browser.post("/dashboard/jobs", data=make_fields(dataset, size="", once=read_once(quoted)))
    assert answer.status_code == 303
    assert house.read(answer.headers["location"].rpartition("/")[2].partition("?")[0]).plan["size"] == 20


def test_a_refused_submission_is_counted_and_explained(
    house: House, browse: Open, analyst: rows.Key, auditor: rows.Key, dataset: str
) -> None:
    browser = browse(analyst)
    answer = browser.post("/dashboard/jobs", data=make_fields(dataset, epsilon="5", once="k" * 32))
    assert answer.status_code == 409
    with house.database.read() as session:
        remaining = house.ledger.budget(session, dataset).remaining.epsilon
    words = f"The budget does not cover this job. The largest job left costs about ε {format_number(remaining)}."
    assert f'<a href="#epsilon">Cost ε: {words}' in answer.text
    assert "remaining" not in answer.text
    assert find_faults(answer.text) == []
    assert 'value="5"' in answer.text
    with house.database.read() as session:
        assert house.ledger.budget(session, dataset).jobs.refused == 1
    (entry,) = [
        each
        for each in browser.get("/v1/audit-log", headers=auditor.headers).json()["items"]
        if each["action"] == "POST /dashboard/jobs"
    ]
    assert (entry["code"], entry["target"], entry["actor"]) == ("budget_exceeded", dataset, analyst.id)
    assert entry["obstacle"] == "limit"
    account = browse(auditor).get(f"/dashboard/populations/{dataset}").text
    assert 'class="chart-refusal"' in account
    assert '<td data-label="Not covered by">the account&#39;s limit</td>' in account
    assert "not covered by the account&#39;s limit" in browse(auditor).get("/dashboard/audit-log").text


def test_forms_from_other_sites_submit_no_job(house: House, browse: Open, analyst: rows.Key, dataset: str) -> None:
    fields = make_fields(dataset, once="k" * 32)
    answer = browse(analyst).post("/dashboard/jobs", data=fields, headers={"Sec-Fetch-Site": "cross-site"})
    assert answer.status_code == 403
    assert house.queue.sent == []
