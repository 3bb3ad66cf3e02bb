"""Pricing a job by a form."""

import html
import json
import math
import re
import time
from dataclasses import replace
from typing import Any

import pytest

from app.dashboard.job_terms import LONGEST_LINE, NotRead, read_numbers, read_terms
from app.dashboard.pages import price
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
from tests.dashboard.conftest import Open, Visit
from tests.dashboard.html_checks import find_faults, remove_scripts
from tests.dashboard.job_forms import make_fields, read_once
from tests.factories import rows
from tests.factories.worker import House

HOSTILE = "<script>alert('x')</script>"


def test_a_quote_states_the_same_figures_as_the_api(browse: Open, analyst: rows.Key, dataset: str) -> None:
    browser = browse(analyst)
    page = browser.post("/dashboard/price", data=make_fields(dataset))
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
    quoted = browser.post("/dashboard/price", data=make_fields(dataset, goal="widening", widening="1.5"))
    assert find_faults(quoted.text) == []
    expected = _read_widening(quoted.text)
    noise, factors = math.sqrt(expected**2 - 1), (expected_accuracy.LEAST, expected_accuracy.MOST)
    shown = quoted.text.partition(" The range from ")[2].partition(" times")[0]
    assert [float(each) for each in shown.split(" to ")] == pytest.approx(
        [math.hypot(1, factor * noise) for factor in factors], rel=0.02
    )
    assert expected == pytest.approx(1.5, rel=0.05)
    cost = quoted.text.partition("It costs <strong>ε ")[2].partition("<")[0]
    again = browser.post("/dashboard/price", data=make_fields(dataset, epsilon=cost)).text
    assert f"It costs <strong>ε {cost}<" in again
    assert _read_widening(again) == expected
    submitted = quoted.text.partition('action="/dashboard/jobs"')[2].partition("</form>")[0]
    changed = quoted.text.partition('name="change"')[0].rpartition("<form")[2]
    for form, goal, epsilon in ((submitted, "cost", cost), (changed, "widening", "0.5")):
        assert f'name="goal" value="{goal}"' in form
        assert f'name="epsilon" value="{epsilon}"' in form
    fields = make_fields(dataset, epsilon=cost, once=read_once(quoted))
    assert browser.post("/dashboard/jobs", data=fields).status_code == 303
    assert len(house.queue.sent) == 1


@pytest.mark.parametrize(
    ("typed", "words"), [("1", "Enter a number from 1.01 to 10."), ("1,2", "Enter a number with a decimal point")]
)
def test_a_wrong_widening_is_refused_at_its_field(
    browse: Open, analyst: rows.Key, dataset: str, typed: str, words: str
) -> None:
    page = browse(analyst).post("/dashboard/price", data=make_fields(dataset, goal="widening", widening=typed))
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
    page = browser.post("/dashboard/price", data=make_fields(dataset, goal="widening", widening="1.5"))
    assert page.status_code == 429
    assert "Wait 5 seconds and show the price again, or choose the cost instead." in page.text
    page = browser.post("/dashboard/price", data=make_fields(dataset))
    assert page.status_code == 200
    assert "It costs <strong>ε 0.5</strong>" in page.text
    assert "Expected accuracy" not in page.text


def _read_widening(page: str) -> float:
    """Read the expected widening of the widest interval."""
    return float(page.partition("is expected to be about <strong>")[2].partition(" times")[0])


def test_a_quote_changes_nothing(house: House, browse: Open, analyst: rows.Key, dataset: str) -> None:
    browser = browse(analyst)
    browser.post("/dashboard/price", data=make_fields(dataset))
    with house.database.read() as session:
        assert house.ledger.budget(session, dataset).version == 1
    assert house.queue.sent == []


def test_a_search_is_refused_before_its_first_estimate(
    house: House, analyst: rows.Key, dataset: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = list[MechanismPlan]()
    monkeypatch.setattr(expected_accuracy, "estimate", lambda plan, _: made.append(plan))
    monkeypatch.setattr(quotes, "_ESTIMATES", Estimates())
    rates = RateLimits(MemoryWindows(), Rate(60, 60), Rate(10, 60), TrustedProxies.of([]))
    with open_browser(create_app(replace(house.services, rates=rates)), analyst) as browser:
        page = browser.post("/dashboard/price", data=make_fields(dataset, goal="widening", widening="1.5"))
    assert page.status_code == 429
    seconds = int(page.headers["retry-after"])
    assert f"Wait {seconds} second" in page.text
    assert "Retry-After" not in page.text
    assert made == []


@pytest.mark.process
@pytest.mark.browser
@pytest.mark.long
def test_a_double_click_asks_for_one_price(
    visit: Visit, analyst: rows.Key, dataset: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def estimate(*_: object) -> ExpectedAccuracy:
        time.sleep(1)
        return ExpectedAccuracy({"age": 0.1}, {"age": 1.5})

    monkeypatch.setattr(expected_accuracy, "estimate", estimate)
    monkeypatch.setattr(quotes, "_ESTIMATES", Estimates())
    page = visit(analyst, f"/dashboard/price?dataset_id={dataset}")
    page.run("document.getElementById('target').value = 'income_gt_50k'")
    page.run("document.getElementById('feature-1').checked = true")
    page.run("""(button => { button.click(); setTimeout(() => button.click(), 1000) })(
      document.querySelector('.pricing button'))""")
    answered = "document.querySelector('h1').innerText === 'Quote' || document.querySelector('.error-summary')"
    page.wait(f"document.readyState === 'complete' && ({answered})")
    assert "It costs" in page.run("document.querySelector('main').innerText")
    assert page.faults() == []


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
    page = browse(analyst).post("/dashboard/price", data=make_fields(dataset, **{field: value}))
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


def test_mistakes_are_listed_in_the_order_of_the_form(browse: Open, analyst: rows.Key, dataset: str) -> None:
    typed = make_fields(dataset, size="ten", epsilon="0,5", features=[], target="")
    page = browse(analyst).post("/dashboard/price", data=typed).text
    summary = page.partition("There is a problem")[2].partition("</ul>")[0]
    assert re.findall(r'href="#([a-z_]+)">([^:]+):', summary) == [
        ("features", "Features"),
        ("epsilon", "Cost ε"),
        ("size", "Points"),
    ]


def test_a_job_beyond_the_budget_has_no_submit_button(browse: Open, analyst: rows.Key, dataset: str) -> None:
    page = browse(analyst).post("/dashboard/price", data=make_fields(dataset, epsilon="5")).text
    assert "The budget does not cover this job" in page
    assert "The account&#39;s limit does not cover it." in page
    assert "Submit this job" not in page


def test_a_job_beyond_the_allocation_names_it(
    house: House, browse: Open, owner: rows.Key, analyst: rows.Key, dataset: str
) -> None:
    allocations = {"allocations": [{"key_id": analyst.id, "epsilon": 0.1}]}
    with house.client() as client:
        assert client.patch(f"/v1/datasets/{dataset}", json=allocations, headers=owner.headers).status_code == 200
    page = browse(analyst).post("/dashboard/price", data=make_fields(dataset, epsilon="0.5")).text
    assert "Your allocation does not cover it." in page


def test_a_quote_can_be_changed_without_typing_again(browse: Open, analyst: rows.Key, dataset: str) -> None:
    page = browse(analyst).post("/dashboard/price", data=make_fields(dataset, change="1", epsilon="0.25")).text
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
    page = browse(owner).post("/dashboard/price", data=make_fields(dataset))
    assert "The data is public, so the job costs nothing." in page.text


def test_a_ready_dataset_is_found_below_newer_ones_without_a_table(
    house: House, browse: Open, owner: rows.Key, dataset: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(price, "MOST_DATASETS", 2)
    with house.database.write() as tx:
        for _ in range(3):
            rows.dataset(tx, owner.id, sensitivity="public")
    page = browse(owner).get("/dashboard/price").text
    assert "census" in page
    assert "the newest" not in page


def test_a_list_of_ready_datasets_says_that_there_are_more(
    house: House, browse: Open, owner: rows.Key, dataset: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(price, "MOST_DATASETS", 2)
    for _ in range(2):
        house.ready_dataset(owner, name="newer")
    page = browse(owner).get("/dashboard/price").text
    assert "These are the newest 2." in page
    assert "census" not in page
    assert find_faults(page) == []


def test_a_deleted_dataset_cannot_be_chosen(house: House, browse: Open, owner: rows.Key, dataset: str) -> None:
    with house.client() as client:
        assert client.delete(f"/v1/datasets/{dataset}", headers=owner.headers).status_code == 200
    assert "No dataset is ready" in browse(owner).get("/dashboard/price").text


@pytest.mark.parametrize("role", ["auditor", "admin"])
def test_overseers_cannot_price(house: House, browse: Open, dataset: str, role: str) -> None:
    with house.database.write() as tx:
        key = rows.api_key(tx, role)
    browser = browse(key)
    assert browser.get("/dashboard/price").status_code == 403
    assert browser.post("/dashboard/price", data=make_fields(dataset)).status_code == 403
    assert browser.post("/dashboard/jobs", data=make_fields(dataset, once="k" * 32)).status_code == 403


def test_long_lines_of_a_form_are_not_read() -> None:
    """Hostile blanks take time by the length of a line. Other requests wait for it."""
    assert read_numbers("age" + " " * (LONGEST_LINE - 6) + "= 1") == {"age": 1.0}
    for read, line in ((read_numbers, "age{}= 1"), (read_terms, "age:{}sex"), (read_terms, "poly(age,{}3)")):
        with pytest.raises(NotRead, match="characters in a line"):
            read(line.format(" " * LONGEST_LINE))
