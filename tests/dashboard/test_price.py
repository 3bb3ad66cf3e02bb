"""Pricing and submitting a job by forms."""

import html
import json
import math
import re
import shlex
from dataclasses import replace
from typing import Any

import httpx
import pytest

from app.dashboard.job_terms import LONGEST_LINE, NotRead, read_numbers, read_terms
from app.errors import RateLimited
from app.http.middleware.addresses import TrustedProxies
from app.http.rate_limits.rate_windows import MemoryWindows, Rate
from app.http.rate_limits.rates import RateLimits
from app.inference import expected_accuracy
from app.inference.core.plan import MechanismPlan
from app.inference.expected_accuracy import ExpectedAccuracy
from app.jobs import quotes
from app.jobs.estimates import Estimates
from app.main import create_app
from tests.dashboard.browser import open_browser
from tests.dashboard.conftest import Open
from tests.dashboard.html_checks import find_faults, remove_scripts
from tests.factories import rows
from tests.factories.worker import House

HOSTILE = "<script>alert('x')</script>"


@pytest.fixture
def dataset(house: House, owner: rows.Key, analyst: rows.Key) -> str:
    return house.ready_dataset(owner, name="census", shared_with=(analyst.id,))


def _fields(dataset: str, **changes: Any) -> dict[str, Any]:
    typed = {
        "dataset_id": dataset,
        "family": "logistic-regression",
        "target": "income_gt_50k",
        "features": ["age", "sex"],
        "prior_scale": "1",
        "size": "20",
        "epsilon": "0.5",
    }
    return typed | changes


def _once(answer: httpx.Response) -> str:
    return answer.text.partition('name="once" value="')[2].partition('"')[0]


def test_a_quote_states_the_same_figures_as_the_api(browse: Open, analyst: rows.Key, dataset: str) -> None:
    browser = browse(analyst)
    page = browser.post("/dashboard/price", data=_fields(dataset))
    assert page.status_code == 200
    command = re.search(r"-d &#39;(.*?)&#39;", page.text.replace("&#34;", '"'))
    assert command is not None
    quote = browser.post("/v1/quotes", json=json.loads(command[1]), headers=analyst.headers).json()
    assert quote["affordable"]
    assert f"<strong>{quote['more_like_this']} more jobs</strong> like this fit" in page.text
    assert "It costs <strong>ε 0.5</strong>" in page.text
    assert "<strong>1.7 : 1</strong>" in page.text
    assert find_faults(page.text) == []
    assert "LogisticRegression(features=[&#34;age&#34;, &#34;sex&#34;], target=&#34;income_gt_50k&#34;" in page.text


def test_the_cost_follows_from_the_widening_and_the_widening_from_the_cost(
    house: House, browse: Open, analyst: rows.Key, dataset: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def estimate(plan: MechanismPlan, _: object) -> ExpectedAccuracy:
        assert plan.mechanism is not None
        noise = 0.1 * plan.mechanism.noise_multiplier
        return ExpectedAccuracy({"age": noise}, {"age": math.hypot(1, noise)})

    monkeypatch.setattr(expected_accuracy, "estimate", estimate)
    monkeypatch.setattr(quotes, "_ESTIMATES", Estimates())
    browser = browse(analyst)
    quoted = browser.post("/dashboard/price", data=_fields(dataset, goal="widening", widening="1.5"))
    assert find_faults(quoted.text) == []
    expected = _read_widening(quoted.text)
    assert expected == pytest.approx(1.5, rel=0.05)
    cost = quoted.text.partition("It costs <strong>ε ")[2].partition("<")[0]
    again = browser.post("/dashboard/price", data=_fields(dataset, epsilon=cost)).text
    assert f"It costs <strong>ε {cost}<" in again
    assert _read_widening(again) == expected
    submitted = quoted.text.partition('action="/dashboard/jobs"')[2].partition("</form>")[0]
    changed = quoted.text.partition('name="change"')[0].rpartition("<form")[2]
    for form, goal, epsilon in ((submitted, "cost", cost), (changed, "widening", "0.5")):
        assert f'name="goal" value="{goal}"' in form
        assert f'name="epsilon" value="{epsilon}"' in form
    fields = _fields(dataset, epsilon=cost, once=_once(quoted))
    assert browser.post("/dashboard/jobs", data=fields).status_code == 303
    assert len(house.queue.sent) == 1


@pytest.mark.parametrize(
    ("typed", "words"), [("1", "Enter a number from 1.01 to 10."), ("1,2", "Enter a number with a decimal point")]
)
def test_a_wrong_widening_is_refused_at_its_field(
    browse: Open, analyst: rows.Key, dataset: str, typed: str, words: str
) -> None:
    page = browse(analyst).post("/dashboard/price", data=_fields(dataset, goal="widening", widening=typed))
    assert page.status_code == 422
    assert f'href="#widening">Widening of intervals: {words}' in page.text
    assert f'name="widening" value="{typed}"' in page.text
    assert find_faults(page.text) == []


def test_a_busy_estimate_delays_the_widening_and_not_the_price(
    browse: Open, analyst: rows.Key, dataset: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise RateLimited("Another accuracy is being estimated.")

    monkeypatch.setattr("app.jobs.estimates.Estimates.find", refuse)
    browser = browse(analyst)
    page = browser.post("/dashboard/price", data=_fields(dataset, goal="widening", widening="1.5"))
    assert page.status_code == 429
    assert "Another accuracy is being estimated." in page.text
    page = browser.post("/dashboard/price", data=_fields(dataset))
    assert page.status_code == 200
    assert "It costs <strong>ε 0.5</strong>" in page.text
    assert "Expected accuracy" not in page.text


def _read_widening(page: str) -> float:
    """Read the expected widening of the widest interval."""
    return float(page.partition("is expected to be about <strong>")[2].partition(" times")[0])


def test_the_command_of_a_quote_submits_the_same_job(
    house: House, browse: Open, analyst: rows.Key, dataset: str
) -> None:
    more = {"terms": "age:sex\r\npoly(hours, 2)", "prior_means": "age:sex = -0.5", "purpose": "Table 2"}
    browser = browse(analyst)
    page = html.unescape(browser.post("/dashboard/price", data=_fields(dataset, **more)).text)
    commands = re.findall(r"<code>(curl .*?)</code>", page, re.DOTALL)
    [words] = [words for words in map(shlex.split, commands) if words[-1].endswith("/v1/jobs")]
    sent = json.loads(words[words.index("-d") + 1])
    job = browser.post("/v1/jobs", json=sent, headers=analyst.headers).json()
    assert job["purpose"] == "Table 2"
    submitted = browser.post("/dashboard/jobs", data=_fields(dataset, **more, once="k" * 32))
    other = browser.get(
        f"/v1/jobs/{submitted.headers['location'].rpartition('/')[2].partition('?')[0]}", headers=analyst.headers
    ).json()
    assert other["model"] == job["model"]
    assert (other["size"], other["cost"]) == (job["size"], job["cost"])


def test_a_quote_changes_nothing(house: House, browse: Open, analyst: rows.Key, dataset: str) -> None:
    browser = browse(analyst)
    browser.post("/dashboard/price", data=_fields(dataset))
    with house.database.read() as session:
        assert house.ledger.budget(session, dataset).version == 1
    assert house.queue.sent == []


def test_a_submitted_form_makes_one_job(house: House, browse: Open, analyst: rows.Key, dataset: str) -> None:
    browser = browse(analyst)
    typed = _fields(dataset, purpose="Table 2 of Ana's study")
    quoted = browser.post("/dashboard/price", data=typed)
    fields = typed | {"once": _once(quoted)}
    first, second = (browser.post("/dashboard/jobs", data=fields) for _ in range(2))
    assert (first.status_code, second.status_code) == (303, 303)
    assert first.headers["location"] == second.headers["location"]
    assert len(house.queue.sent) == 1
    commands = re.findall(r"<code>(curl .*?)</code>", html.unescape(quoted.text), re.DOTALL)
    words = next(words for words in map(shlex.split, commands) if "-d" in words)
    assert json.loads(words[words.index("-d") + 1])["purpose"] == "Table 2 of Ana's study"
    page = browser.get(first.headers["location"]).text
    assert "Job submitted" in page
    assert "Table 2 of Ana&#39;s study" in page
    assert "logistic regression of income_gt_50k on age, sex" in page
    other = browser.post("/dashboard/jobs", data=fields | {"epsilon": "0.4"})
    assert other.status_code == 409
    assert len(house.queue.sent) == 1


def test_the_submitted_cost_has_all_digits_of_the_quoted_one(
    browse: Open, analyst: rows.Key, dataset: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(expected_accuracy, "is_estimated", lambda *_: False)
    page = browse(analyst).post("/dashboard/price", data=_fields(dataset, epsilon="0.1234564")).text
    form = page.partition('action="/dashboard/jobs"')[2].partition("</form>")[0]
    assert 'name="epsilon" value="0.1234564"' in form


def test_a_job_without_a_cost_is_not_submitted(house: House, browse: Open, analyst: rows.Key, dataset: str) -> None:
    fields = _fields(dataset, goal="widening", widening="3", once="k" * 32)
    page = browse(analyst).post("/dashboard/jobs", data=fields)
    assert page.status_code == 422
    assert "Show the price first." in page.text
    assert find_faults(page.text) == []
    assert house.queue.sent == []


def test_a_search_is_refused_before_its_first_estimate(
    house: House, analyst: rows.Key, dataset: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = list[MechanismPlan]()
    monkeypatch.setattr(expected_accuracy, "estimate", lambda plan, _: made.append(plan))
    monkeypatch.setattr(quotes, "_ESTIMATES", Estimates())
    rates = RateLimits(MemoryWindows(), Rate(60, 60), Rate(10, 60), TrustedProxies.of([]))
    with open_browser(create_app(replace(house.services, rates=rates)), analyst) as browser:
        page = browser.post("/dashboard/price", data=_fields(dataset, goal="widening", widening="1.5"))
    assert page.status_code == 429
    assert int(page.headers["retry-after"]) >= 1
    assert made == []


@pytest.mark.parametrize("once", ["", "short", "x" * 65])
def test_a_form_without_its_key_is_refused(
    house: House, browse: Open, analyst: rows.Key, dataset: str, once: str
) -> None:
    answer = browse(analyst).post("/dashboard/jobs", data=_fields(dataset, once=once))
    assert answer.status_code == 422
    assert house.queue.sent == []


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("epsilon", "0,5", "Enter a number with a decimal point"),
        ("epsilon", "", "Enter a number with a decimal point"),
        ("epsilon", "0", "Use a number greater than 0."),
        ("epsilon", "1e3", "Enter a number with a decimal point"),
        ("epsilon", "500", "Use a number of at most 20."),
        ("size", "ten", "Enter a whole number"),
        ("size", "0", "Use a number of at least 1."),
        ("prior_scale", "-1", "Enter a number with a decimal point"),
        ("features", [], "Choose at least one feature."),
        ("features", ["age", "income_gt_50k"], "The target cannot be a feature"),
        ("target", "", "Name a declared column: age, hours, sex, income_gt_50k."),
        ("target", "hours", "This model needs a target of type binary."),
        ("family", HOSTILE, ""),
        ("terms", "age & sex", "Write one term a line"),
        ("terms", "poly(sex, 3)", ""),
        ("terms", "age:nothing", "Name a declared column: age, hours, sex."),
        ("prior_means", "age 1", "Write one name and number a line"),
        ("prior_means", "age = 1\nage = 2", "Write each name once."),
        ("prior_means", "nothing = 1", ""),
        ("prior_scales", "age = 0", "Use a number greater than 0."),
    ],
)
def test_mistakes_are_named_at_their_field_and_input_is_kept(
    browse: Open, analyst: rows.Key, dataset: str, field: str, value: Any, message: str
) -> None:
    page = browse(analyst).post("/dashboard/price", data=_fields(dataset, **{field: value}))
    assert page.status_code == 422
    assert "There is a problem" in page.text
    assert f'href="#{field}"' in page.text
    assert page.text.count(message.replace("'", "&#39;")) >= 2
    assert 'aria-invalid="true"' in page.text
    assert "<script" not in remove_scripts(page.text)[0]
    assert "<title>Error: " in page.text
    assert find_faults(page.text) == []
    if isinstance(value, str) and field in {"epsilon", "size", "prior_scale"}:
        assert f'name="{field}" value="{value}"' in page.text
    if field in {"terms", "prior_means", "prior_scales"}:
        assert f">{html.escape(value)}</textarea>" in page.text
        assert "<details open>" in page.text
    for name in ("age", "sex"):
        checked = f'value="{name}" checked' in page.text
        assert checked == (field != "features" or name in value)


def test_terms_and_priors_reach_the_job(house: House, browse: Open, analyst: rows.Key, dataset: str) -> None:
    browser = browse(analyst)
    more = {"terms": "age:sex\r\npoly(hours, 2)\nbs(age,4)", "prior_means": "age:sex = -0.5", "prior_scales": "sex=2"}
    typed = _fields(dataset, features=["sex"], **more)
    quoted = browser.post("/dashboard/price", data=typed)
    assert quoted.status_code == 200, quoted.text.partition("There is a problem")[2].partition("</ul>")[0]
    assert find_faults(quoted.text) == []
    for words in ("sex, age:sex, poly(hours, 2), bs(age,4)", "sex=2; mean age:sex = -0.5, others 0"):
        assert words in quoted.text
    assert "prior_mean={&#34;age:sex&#34;: -0.5}, prior_scales={&#34;sex&#34;: 2.0}" in quoted.text
    changed = browser.post("/dashboard/price", data=typed | {"change": "1"}).text
    assert "<details open>" in changed
    answer = browser.post("/dashboard/jobs", data=typed | {"once": _once(quoted)})
    assert answer.status_code == 303, answer.text
    model = house.read(answer.headers["location"].rpartition("/")[2].partition("?")[0]).plan["model"]
    terms = [{"interaction": ["age", "sex"]}, {"polynomial": "hours", "degree": 2}]
    assert model["features"][:3] == ["sex", *terms]
    assert model["features"][3]["spline"] == "age"
    assert (model["prior"]["mean"], model["prior"]["scales"]) == ({"age:sex": -0.5}, {"sex": 2.0})


def test_mistakes_are_listed_in_the_order_of_the_form(browse: Open, analyst: rows.Key, dataset: str) -> None:
    typed = _fields(dataset, size="ten", epsilon="0,5", features=[], target="")
    page = browse(analyst).post("/dashboard/price", data=typed).text
    summary = page.partition("There is a problem")[2].partition("</ul>")[0]
    assert re.findall(r'href="#([a-z_]+)">([^:]+):', summary) == [
        ("features", "Features"),
        ("epsilon", "Cost ε"),
        ("size", "Points"),
    ]


def test_a_job_beyond_the_budget_has_no_submit_button(browse: Open, analyst: rows.Key, dataset: str) -> None:
    page = browse(analyst).post("/dashboard/price", data=_fields(dataset, epsilon="5")).text
    assert "The budget does not cover this job" in page
    assert "The account&#39;s limit does not cover it." in page
    assert "Submit this job" not in page


def test_a_job_beyond_the_allocation_names_it(
    house: House, browse: Open, owner: rows.Key, analyst: rows.Key, dataset: str
) -> None:
    allocations = {"allocations": [{"key_id": analyst.id, "epsilon": 0.1}]}
    with house.client() as client:
        assert client.patch(f"/v1/datasets/{dataset}", json=allocations, headers=owner.headers).status_code == 200
    page = browse(analyst).post("/dashboard/price", data=_fields(dataset, epsilon="0.5")).text
    assert "Your allocation does not cover it." in page


def test_an_empty_number_of_points_is_left_out(house: House, browse: Open, analyst: rows.Key, dataset: str) -> None:
    browser = browse(analyst)
    quoted = browser.post("/dashboard/price", data=_fields(dataset, size=""))
    assert find_faults(quoted.text) == []
    assert "<dt>Points</dt><dd>20</dd>" in quoted.text
    assert "size=" not in quoted.text.partition("client.jobs.submit")[2].partition("</pre>")[0]
    answer = browser.post("/dashboard/jobs", data=_fields(dataset, size="", once=_once(quoted)))
    assert answer.status_code == 303
    assert house.read(answer.headers["location"].rpartition("/")[2].partition("?")[0]).plan["size"] == 20


def test_a_refused_submission_is_counted_and_explained(
    house: House, browse: Open, analyst: rows.Key, auditor: rows.Key, dataset: str
) -> None:
    browser = browse(analyst)
    answer = browser.post("/dashboard/jobs", data=_fields(dataset, epsilon="5", once="k" * 32))
    assert answer.status_code == 409
    assert "The budget does not cover this job." in answer.text
    assert 'value="5"' in answer.text
    with house.database.read() as session:
        assert house.ledger.budget(session, dataset).jobs.refused == 1
    (entry,) = [
        each
        for each in browser.get("/v1/audit-log", headers=auditor.headers).json()["items"]
        if each["action"] == "POST /dashboard/jobs"
    ]
    assert (entry["code"], entry["target"], entry["actor"]) == ("budget_exceeded", dataset, analyst.id)
    assert 'class="chart-refusal"' in browse(auditor).get(f"/dashboard/populations/{dataset}").text


def test_a_quote_can_be_changed_without_typing_again(browse: Open, analyst: rows.Key, dataset: str) -> None:
    page = browse(analyst).post("/dashboard/price", data=_fields(dataset, change="1", epsilon="0.25")).text
    assert 'name="epsilon" value="0.25"' in page
    assert 'value="age" checked' in page
    assert "There is a problem" not in page


def test_every_control_of_the_form_has_a_label(browse: Open, analyst: rows.Key, dataset: str) -> None:
    page = browse(analyst).get("/dashboard/price", params={"dataset_id": dataset}).text
    controls = re.findall(r'<(?:input|select)(?![^>]*type="hidden")[^>]* id="([^"]+)"', page)
    assert len(controls) == 12
    assert [name for name in controls if f'<label for="{name}">' not in page] == []


def test_only_ready_datasets_can_be_chosen(house: House, browse: Open, owner: rows.Key, dataset: str) -> None:
    with house.database.write() as tx:
        rows.dataset(tx, owner.id, name="not-ready", sensitivity="public")
    page = browse(owner).get("/dashboard/price").text
    assert "census" in page
    assert "not-ready" not in page


def test_jobs_on_public_data_cost_nothing(house: House, browse: Open, owner: rows.Key) -> None:
    dataset = house.ready_dataset(owner, sensitivity="public")
    form = browse(owner).get("/dashboard/price", params={"dataset_id": dataset}).text
    assert "On public data it is not charged." in form
    page = browse(owner).post("/dashboard/price", data=_fields(dataset))
    assert "The data is public, so the job costs nothing." in page.text


@pytest.mark.parametrize("role", ["auditor", "admin"])
def test_overseers_cannot_price(house: House, browse: Open, dataset: str, role: str) -> None:
    with house.database.write() as tx:
        key = rows.api_key(tx, role)
    browser = browse(key)
    assert browser.get("/dashboard/price").status_code == 403
    assert browser.post("/dashboard/price", data=_fields(dataset)).status_code == 403
    assert browser.post("/dashboard/jobs", data=_fields(dataset, once="k" * 32)).status_code == 403


def test_forms_from_other_sites_submit_no_job(house: House, browse: Open, analyst: rows.Key, dataset: str) -> None:
    fields = _fields(dataset, once="k" * 32)
    answer = browse(analyst).post("/dashboard/jobs", data=fields, headers={"Sec-Fetch-Site": "cross-site"})
    assert answer.status_code == 403
    assert house.queue.sent == []


def test_long_lines_of_a_form_are_not_read() -> None:
    """Hostile blanks take time by the length of a line. Other requests wait for it."""
    assert read_numbers("age" + " " * (LONGEST_LINE - 6) + "= 1") == {"age": 1.0}
    for read, line in ((read_numbers, "age{}= 1"), (read_terms, "age:{}sex"), (read_terms, "poly(age,{}3)")):
        with pytest.raises(NotRead, match="characters in a line"):
            read(line.format(" " * LONGEST_LINE))
