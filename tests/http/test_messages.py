"""Headers that two readers could take differently: a request has each of them once."""

import httpx
import pytest

from app.http.errors.messages import SINGLE
from tests.factories import rows
from tests.factories.datasets import problem


@pytest.mark.parametrize("name", SINGLE)
@pytest.mark.parametrize("same", [True, False])
def test_a_header_that_comes_twice_is_refused(client: httpx.Client, owner: rows.Key, name: str, *, same: bool) -> None:
    """Neither of two keys counts, not even where both are the same valid one."""
    value = owner.headers["Authorization"] if name == "authorization" else "1"
    sent = [(name, value), (name, value if same else "2")]
    others = [] if name == "authorization" else [*owner.headers.items()]
    answer = client.get("/v1/me", headers=[*others, *sent])
    assert problem(answer, 422, "invalid_request")["detail"] == f"Send the header {name.title()} once."


def test_headers_that_are_lists_may_come_twice(client: httpx.Client, owner: rows.Key) -> None:
    sent = [*owner.headers.items(), ("Accept", "application/json"), ("Accept", "text/plain")]
    assert client.get("/v1/me", headers=sent).status_code == 200
