"""The first bytes of a file are checked before it is sent."""

from typing import Any

import pandas as pd
import pytest

from tests.client.fake import DATASET, Script, ok

ZIP = b"PK\x03\x04\x14\x00\x06\x00\x08\x00 and so on"


@pytest.mark.parametrize(
    ("source", "sentence"),
    [
        (ZIP, "zip archive, as Excel workbooks are"),
        (b"age,seen, age\n1,0,1\n", "appears twice"),
        (b'\xef\xbb\xbf\n"age",age\n1,0\n', "appears twice"),
        (pd.DataFrame([[1, 2]], columns=["age", "age"]), "appears twice"),
    ],
)
def test_a_file_that_would_be_rejected_is_not_sent(source: Any, sentence: str) -> None:
    """The fault is in the first line. The message does not quote it."""
    script = Script([ok({})])
    with script.client() as client, pytest.raises(ValueError, match=sentence) as caught:
        client.datasets.upload("ds_1", source)
    assert not script.seen
    assert "age" not in str(caught.value)


@pytest.mark.parametrize(
    "source", [b"age", b"age,age", b"a" * 200_000 + b",b\n1,2\n", b'age,"seen\n1,0\n', b"PAR1,,\n"]
)
def test_without_a_check_other_faults_are_sent_to_the_server(source: bytes) -> None:
    script = Script([ok(DATASET, 202)])
    with script.client() as client:
        client.datasets.upload("ds_1", source, max_null_share=None)
    assert script.bodies == [source]
