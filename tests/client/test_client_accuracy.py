"""The expected accuracy of quotes: asked for only on request, and shown in words."""

import json

import pytest
from corevault import LogisticRegression, UnexpectedReply
from corevault.replies.job import ExpectedAccuracy

from tests.client.fake import Script, ok
from tests.client.test_client_commands import QUOTE

MODEL = LogisticRegression(features=["age"], target="seen")
ACCURACY = {
    "interval_widening": {"age": 1.31, "intercept": 1.1},
    "noise_in_posterior_sds": {"age": 0.85, "intercept": 0.46},
    "assumes": "Rows as declared.",
}


def test_a_quote_asks_for_the_accuracy_on_request_only() -> None:
    script = Script([ok(QUOTE), ok(QUOTE | {"expected_accuracy": ACCURACY})])
    with script.client() as client:
        assert client.quote("ds_1", MODEL, epsilon=0.5).expected_accuracy is None
        found = client.quote("ds_1", MODEL, epsilon=0.5, expected_accuracy=True)
    asked = [json.loads(body).get("expected_accuracy") for body in script.bodies]
    assert asked == [None, True]
    assert found.expected_accuracy is not None
    assert found.expected_accuracy.widest == 1.31
    assert "intervals at most about 1.3 times as wide as without noise" in repr(found)


def test_an_accuracy_without_its_members_is_refused() -> None:
    script = Script([ok(QUOTE | {"expected_accuracy": {"interval_widening": {}}})])
    with script.client() as client, pytest.raises(UnexpectedReply, match="lacks members of ExpectedAccuracy"):
        client.quote("ds_1", MODEL, epsilon=0.5, expected_accuracy=True)


def test_quotes_at_several_targets_have_the_accuracy_on_request() -> None:
    ranged = ACCURACY | {"interval_widening_range": {"age": [1.01, 7.7], "intercept": [1.0, 4.3]}}
    quotes = [QUOTE | {"expected_accuracy": each} for each in (ranged, ACCURACY, None, ranged, ranged)]
    script = Script([ok({"quotes": quotes[:4]}), ok({"quotes": quotes[4:]}), ok({"quotes": [QUOTE]})])
    with script.client() as client:
        targets = [0.1, 0.2, 0.3, 0.4, 0.5]
        rows = client.quote_rows("ds_1", MODEL, epsilons=targets, expected_accuracy=True)
        (plain,) = client.quote_rows("ds_1", MODEL, epsilons=[0.1])
    asked = [json.loads(body) for body in script.bodies]
    assert [each["privacy"]["epsilon"] for each in asked] == [targets[:4], targets[4:], [0.1]]
    assert [each.get("expected_accuracy") for each in asked] == [True, True, None]
    shown = [(row["widening"], row["widening_from"], row["widening_to"]) for row in rows]
    whole, without = (1.31, 1.01, 7.7), (1.31, None, None)
    assert shown == [whole, without, (None, None, None), whole, whole]
    assert "widening" not in plain


def test_the_words_of_an_accuracy_have_its_range() -> None:
    ranged = ACCURACY | {"interval_widening_range": {"age": [1.01, 7.7], "intercept": [1.0, 4.3]}}
    assert "1 to 7.7 in nine of ten cases" in str(ExpectedAccuracy.from_json(ranged))
