"""The blocks of a series, and idempotency keys of their jobs."""

import hashlib
import json
from typing import Any

from corevault._arguments import require_text
from corevault._http import Http
from corevault.errors import InvalidArgument
from corevault.pages import fetch_page
from corevault.replies.dataset import Dataset

_LARGEST_PAGE = 200


async def find_blocks(http: Http, series: object, owner: str | None) -> list[Dataset]:
    """The blocks of a series that are ready, in the order of their declaration.

    Raises ``InvalidArgument`` if there is none, and for a name that several owners use.
    """
    require_text(series, "series")
    datasets = await fetch_page(http, "/v1/datasets", Dataset, {"limit": _LARGEST_PAGE})
    blocks = [each async for each in datasets if each.series == series and each.status == "ready"]
    blocks = [each for each in blocks if owner is None or (each.owner is not None and each.owner.id == owner)]
    if not blocks:
        raise InvalidArgument(
            f"No dataset of the series {series!r} is ready. client.datasets.list() shows the datasets that you may see."
        )
    owners = sorted({each.owner.id for each in blocks if each.owner is not None})
    if len(owners) > 1:
        raise InvalidArgument(f"Several owners have a series {series!r}; pass one of these as owner: {owners}.")
    return sorted(blocks, key=lambda each: each.id)


def make_key(prefix: str, request: dict[str, Any]) -> str:
    """The idempotency key of one job of a stream: the same for the same request."""
    text = json.dumps(request, sort_keys=True, default=str)
    return f"{prefix}-{hashlib.sha256(text.encode()).hexdigest()}"
