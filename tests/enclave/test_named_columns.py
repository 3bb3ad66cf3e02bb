"""A rejection names columns of the header or the declaration, and never a cell."""

import json
from typing import Any

import httpx
import pyarrow as pa
import pytest

from app.db import Database
from support.vault import ARROW, CSV, PARQUET, Vault, make_csv_file
from tests.enclave.test_arrow_source import encode
from tests.factories import rows
from tests.factories.datasets import declared
from tests.factories.worker import House
from workers.enclave import Rejected
from workers.enclave.faults import MOST_CHARACTERS, MOST_NAMES

pytestmark = pytest.mark.parsing

HEADER = ["age", "hours", "sex", "race", "rich", "ill"]
ROW = ["20", "30", "Male", "A", "1", "0"]
COLUMNS: list[dict[str, Any]] = [
    {"name": "dose", "type": "real", "lower": 0, "upper": 1},
    {"name": "day", "type": "integer", "lower": 0, "upper": 9},
]


def test_missing_columns_are_named_as_declared(vault: Vault) -> None:
    """W3: for a file without a header all declared columns are missing, and no cell of its first row is missing."""
    headerless = make_csv_file([ROW], ["77", "31", "Male", "canary", "1", "0"])
    assert vault.ingest(vault.receive(headerless)) == Rejected("missing_column", tuple(HEADER))
    one = make_csv_file([ROW[1:]], HEADER[1:])
    assert vault.ingest(vault.receive(one)) == Rejected("missing_column", ("age",))
    other = make_csv_file([ROW], ["AGE", *HEADER[1:]])
    assert vault.ingest(vault.receive(other)) == Rejected("missing_column", ("age",))


@pytest.mark.parametrize("media", [CSV, PARQUET, ARROW])
def test_unknown_columns_are_named_as_in_the_header(vault: Vault, media: str) -> None:
    """At most 20 names, shortened, and printable."""
    unknown = ["Unnamed: 0", "n" * 200, "tab\there", "ünï", *(f"x{place}" for place in range(40))]
    names = [unknown[0], *HEADER, *unknown[1:]]
    cells = {name: pa.array(["1"]) for name in names}
    data = make_csv_file([["1"] * len(names)], names) if media == CSV else encode(pa.table(cells), media)
    outcome = vault.ingest(vault.receive(data, media))
    expected = ["Unnamed: 0", "n" * MOST_CHARACTERS, "tab\ufffdhere", *unknown[3:MOST_NAMES]]
    assert outcome == Rejected("unknown_column", tuple(expected))


def test_only_owner_and_auditor_see_the_named_columns(house: House, database: Database) -> None:
    """W3: they follow from the file like the rejection, so analysts do not see them."""
    with database.write() as tx:
        owner, analyst, auditor = (rows.api_key(tx, role) for role in ("owner", "analyst", "auditor"))
    content = encode(pa.table({"dose": pa.array([[0.5]]), "day": pa.array([0], pa.timestamp("s"))}), PARQUET)
    with house.client() as client:
        dataset_id = declared(client, owner, columns=COLUMNS, shared_with=[analyst.id])["id"]
        place = f"/v1/datasets/{dataset_id}"
        shown = _reject(house, client, owner, place, content, PARQUET)
        assert shown["content"] == {
            "version": 1,
            "status": "rejected",
            "rejection": "wrong_type",
            "rejection_columns": ["dose", "day"],
        }
        assert shown["rejection"] == {"code": "wrong_type", "columns": ["dose", "day"]}
        of_auditor = client.get(place, headers=auditor.headers).json()
        assert (of_auditor["content"], of_auditor["rejection"]) == (shown["content"], shown["rejection"])
        of_analyst = client.get(place, headers=analyst.headers).json()
        assert of_analyst["content"] is None
        assert "rejection" not in json.dumps(of_analyst)
        malformed = _reject(house, client, owner, place, b"PAR1", PARQUET)
        assert malformed["content"] == {"version": 2, "status": "rejected", "rejection": "malformed"}
        assert malformed["rejection"] == {"code": "malformed", "columns": []}
        missing = _reject(house, client, owner, place, b"dose\n1\n", CSV)
        assert missing["rejection"] == {"code": "missing_column", "columns": ["day"]}
        ready = _reject(house, client, owner, place, b"dose,day\n1,1\n", CSV)
        assert "rejection" not in ready


def _reject(
    house: House, client: httpx.Client, owner: rows.Key, place: str, content: bytes, media: str
) -> dict[str, Any]:
    headers = owner.headers | {"Content-Type": media}
    assert client.put(f"{place}/content", content=content, headers=headers).status_code == 202
    house.work()
    shown: dict[str, Any] = client.get(place, headers=owner.headers).json()
    return shown
