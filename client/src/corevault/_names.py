"""Names of datasets where ids are taken."""

from typing import Any

from corevault._arguments import as_json
from corevault._http import Http, quote_segment
from corevault._ids import read_id
from corevault.errors import InvalidArgument, NotFound
from corevault.pages import fetch_page
from corevault.replies.dataset import Dataset

_PREFIX = "ds_"
_LARGEST_PAGE = 200


async def find_dataset_id(http: Http, given: str | Dataset) -> str:
    """The id of a dataset, given as an object, an id or a name.

    Raises ``NotFound`` for a name that no dataset has, and ``InvalidArgument`` for a name of several datasets.
    """
    text = read_id(given, Dataset)
    quote_segment(text)  # refuses a text that cannot be an id or a name
    if text.startswith(_PREFIX):
        return text
    datasets = await fetch_page(http, "/v1/datasets", Dataset, {"limit": _LARGEST_PAGE})
    ids = [each.id async for each in datasets if each.name == text and each.status != "deleted"]
    if not ids:
        detail = f"No dataset that you may see has the name {text!r}; client.datasets.list() shows their names and ids."
        raise NotFound({"detail": detail, "code": NotFound.CODE}, status=404)
    if len(ids) > 1:
        raise InvalidArgument(f"Several datasets have the name {text!r}; pass one of these ids: {', '.join(ids)}.")
    return ids[0]


async def name_dataset(http: Http, body: dict[str, Any]) -> dict[str, Any]:
    """The ``body`` of a job or a quote with the id of its dataset.

    The rest of the body is checked first, so that a mistake sends nothing.
    """
    checked: dict[str, Any] = as_json(body)
    return checked | {"dataset_id": await find_dataset_id(http, checked["dataset_id"])}
