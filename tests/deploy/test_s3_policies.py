"""The policy files for S3 cover every place that the settings name."""

import json
from pathlib import Path
from typing import Final

import pytest

from app.config import Settings
from tests.factories.s3_users import POLICIES

WORKERS_ONLY: Final = "vault_url"


def _read_places(tmp_path: Path) -> dict[str, str]:
    """Map each setting that names a prefix to its resource."""
    settings = Settings(data_dir=tmp_path, storage_url="s3://BUCKET/PREFIX", mark_url="s3://MARK_BUCKET/MARK_PREFIX")
    urls = {name: str(value) for name, value in settings if str(value).startswith("s3://")}
    del urls["storage_url"]  # the areas are below it, and nothing is stored in it directly
    return {name: url.replace("s3://", "arn:aws:s3:::") for name, url in urls.items()}


@pytest.mark.parametrize("who", ["api", "worker"])
def test_policies_cover_every_place_that_settings_name(who: str, tmp_path: Path) -> None:
    places = _read_places(tmp_path)
    assert len(places) == 5
    statements = json.loads((POLICIES / f"{who}.json").read_text())["Statement"]
    resources = {each for statement in statements for each in statement["Resource"]}
    readable = {each for one in statements if "s3:GetObject" in one["Action"] for each in one["Resource"]}
    covered = {name for name, place in places.items() if any(each.startswith(f"{place}/") for each in readable)}
    assert covered == places.keys() - ({WORKERS_ONLY} if who == "api" else set())
    buckets = {place.split("/")[0] for place in places.values()}
    assert buckets <= resources
