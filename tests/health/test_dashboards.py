"""The dashboard and the alert rules use existing metrics and labels."""

import re

import httpx
import pytest
from prometheus_client.parser import text_string_to_metric_families

from tests.factories import rows
from tools import dashboard

ALERTS = dashboard.FILE.with_name("alerts.yml")
_METRIC = re.compile(r"corevault_[a-z_]+")
_LABELS = re.compile(r"by \(([a-z, ]+)\)")
_SELECTED = re.compile(r"([a-z]+)(?:=|!=|=~|!~)\"")


def _alert_queries() -> list[str]:
    return re.findall(r"expr: (.+)", ALERTS.read_text())


QUERIES = [query for _, _, query, _ in dashboard.PANELS] + _alert_queries()


@pytest.fixture
def exposed(client: httpx.Client, admin: rows.Key) -> dict[str, set[str]]:
    """Return every series of a first scrape, with its labels."""
    client.get("/v1/me")
    families = text_string_to_metric_families(client.get("/metrics", headers=admin.headers).text)
    return {sample.name: set(sample.labels) for family in families for sample in family.samples} | {
        "corevault_job_claim_seconds": {"quantile"}  # has no series before the first claim
    }


@pytest.mark.parametrize("query", QUERIES)
def test_every_query_uses_existing_metrics_and_labels(exposed: dict[str, set[str]], query: str) -> None:
    (metric,) = set(_METRIC.findall(query))
    assert metric in exposed
    grouped = {label.strip() for labels in _LABELS.findall(query) for label in labels.split(",")}
    assert grouped | set(_SELECTED.findall(query)) <= exposed[metric]


def test_every_metric_is_on_the_dashboard(exposed: dict[str, set[str]]) -> None:
    shown = {metric for _, _, query, _ in dashboard.PANELS for metric in _METRIC.findall(query)}
    kept = {name for name in exposed if not name.endswith(("_created", "_sum", "_count"))}
    assert {name for name in kept if name.startswith("corevault_")} <= shown


def test_the_file_equals_the_output_of_the_tool() -> None:
    assert dashboard.FILE.read_text() == dashboard.text()
