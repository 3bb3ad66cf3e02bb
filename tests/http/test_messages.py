"""Headers that a request may contain only once.

Two servers could read a repeated header differently.
"""

import httpx
import pytest

from app.http.errors.messages import SINGLE
from tests.factories import rows
from tests.factories.datasets import problem


@pytest.mark.parametrize("name", SINGLE)
@pytest.mark.parametrize("same", [True, False])
def test_a_repeated_header_is_refused(client: httpx.Client, owner: rows.Key, name: str, *, same: bool) -> None:
    """Two keys are refused, even if both are the same valid key."""
    value = owner.headers["Authorization"] if name == "authorization" else "1"
    sent = [(name, value), (name, value if same else "2")]
    others = [] if name == "authorization" else [*owner.headers.items()]
    answer = client.get("/v1/me", headers=[*others, *sent])
    assert problem(answer, 422, "invalid_request")["detail"] == f"Send the header {name.title()} once."


def test_a_list_header_may_be_repeated(client: httpx.Client, owner: rows.Key) -> None:
    sent = [*owner.headers.items(), ("Accept", "application/json"), ("Accept", "text/plain")]
    assert client.get("/v1/me", headers=sent).status_code == 200
