"""Texts of objects in terminals and notebooks are short, and show no secret."""

from typing import Any

import pytest
from corevault import ApiKey, Budget, Dataset, Points, Release, Schema, binary, categorical, example, real
from corevault.pages import Page
from corevault.replies._decode import Reply

from app.budgets.schemas import BudgetView
from tests.client.fake import DATASET, Published, Script, ok

COST = {"epsilon": 0.5, "delta": 1e-6}
BUDGET: Any = BudgetView.model_config["json_schema_extra"]["examples"][0]  # type: ignore[index]


def test_replies_have_short_texts() -> None:
    assert repr(Dataset.from_json(DATASET)) == "Dataset(id='ds_1', name='visits', status='ready', slots=100)"
    release = Release.from_json(Published().release)
    assert repr(release) == (
        "Release(id='rel_1', dataset_id='ds_1', method='dp-psvi', size=4, family='logistic-regression', "
        "cost=ε=0.5, δ=1e-06)"
    )
    assert repr(Points("npz", b"x" * 999, "", None, None)) == "Points(format='npz', 999 bytes)"
    budget = Budget.from_json(BUDGET)
    assert len(repr(budget)) < 250
    assert "remaining" in budget._repr_html_()


async def _fetch_nothing(cursor: str) -> Page[Dataset]:
    raise AssertionError(cursor)


def test_a_page_is_a_table() -> None:
    body = {"items": [DATASET, DATASET | {"id": "ds_2", "name": "<b>"}], "next_cursor": "c"}
    with Script([ok(body)]).client() as client:
        page = client.datasets.list()
    assert repr(page) == "Page(2 items, and more pages)"
    assert str(page).splitlines()[1].split() == ["ds_1", "visits", "ready", "100"]
    assert "&lt;b&gt;" in page._repr_html_()
    empty = Page[Dataset]((), None, _fetch_nothing)
    assert str(empty) == repr(empty) == "Page(0 items)"


def test_a_secret_is_in_no_text() -> None:
    key = ApiKey.from_json({"id": "key_1", "name": "ana", "role": "analyst", "key": "cv_secret"})
    assert "cv_secret" not in repr(key) + key._repr_html_()


def test_schemas_checks_and_results_have_texts() -> None:
    schema = Schema(real("age", 0, 90, impute=4), categorical("sex", ["F", "M"]), binary("ill"))
    assert repr(schema) == "Schema(real('age', 0, 90, impute=4), categorical('sex', ['F', 'M']), binary('ill'))"
    assert "0 to 90" in schema._repr_html_()
    check = schema.check({"age": [1, 99], "sex": ["F", "X"], "seen": [1, 0]})
    assert repr(check) == "TableCheck(1 of 2 rows would be null)"
    html = check._repr_html_()
    assert "no such column" in html
    assert "not declared" in html
    core = example()
    assert "rel_example" in core._repr_html_()
    assert "odds" not in core.posterior()._repr_html_()
    assert core.belief is not None
    assert repr(core.belief.blocks[0]) == "Block('noise', 'normal', arrays: names, mean, covariance)"
    assert repr(core.stan()).startswith("StanProgram(")


@pytest.mark.parametrize("kind", Reply.__subclasses__())
def test_every_member_in_a_text_exists(kind: type[Reply]) -> None:
    for name in kind.SHOWN:
        assert name in kind.__dataclass_fields__ or isinstance(getattr(kind, name), property)


@pytest.mark.parametrize("kind", Reply.__subclasses__())
def test_no_reply_has_the_long_text_of_a_dataclass(kind: type[Reply]) -> None:
    assert not vars(kind)["__dataclass_params__"].repr
