"""The expected accuracy of quotes: asked for only on request, and shown in words."""

import json

import pytest
from corevault import LogisticRegression, UnexpectedReply

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
    assert "intervals about 1.3 times as wide as without noise" in repr(found)


def test_an_accuracy_without_its_members_is_refused() -> None:
    script = Script([ok(QUOTE | {"expected_accuracy": {"interval_widening": {}}})])
    with script.client() as client, pytest.raises(UnexpectedReply, match="lacks members of ExpectedAccuracy"):
        client.quote("ds_1", MODEL, epsilon=0.5, expected_accuracy=True)
