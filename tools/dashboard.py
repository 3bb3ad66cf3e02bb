"""Writes ``docs/grafana/corevault.json`` from the list of panels below; do not edit the JSON."""

import json
import sys
from pathlib import Path
from typing import Any, Final

FILE: Final = Path(__file__).resolve().parents[1] / "docs" / "grafana" / "corevault.json"
SOURCE: Final = {"type": "prometheus", "uid": "${source}"}
WIDTH, HEIGHT, COLUMNS = 8, 7, 3

Panel = tuple[str, str, str, str]
"""Title, unit, PromQL, legend."""

PANELS: Final[tuple[Panel, ...]] = (
    ("Requests per second", "reqps", "sum by (status) (rate(corevault_http_requests_total[5m]))", "{{status}}"),
    (
        "Latency, 99th percentile",
        "s",
        "histogram_quantile(0.99, sum by (le, route) (rate(corevault_http_request_seconds_bucket[5m])))",
        "{{route}}",
    ),
    (
        "Error responses",
        "reqps",
        'sum by (route, status) (rate(corevault_http_requests_total{status=~"4..|5.."}[5m]))',
        "{{route}} {{status}}",
    ),
    ("Waiting jobs and uploads", "short", "max by (kind) (corevault_queue_depth)", "{{kind}}"),
    ("Waiting time of the oldest", "s", "max by (kind) (corevault_queue_age_seconds)", "{{kind}}"),
    ("Time until a job is claimed", "s", "max by (quantile) (corevault_job_claim_seconds)", "{{quantile}}"),
    ("Running jobs by stage", "short", "max by (stage) (corevault_jobs_running)", "{{stage}}"),
    (
        "Jobs ended per hour",
        "short",
        'max by (status) (delta(corevault_jobs{status!~"queued|running"}[1h]))',
        "{{status}}",
    ),
    ("Uploads by status", "short", "max by (status) (corevault_contents)", "{{status}}"),
    ("Age of the oldest upload that is not processed", "s", "max(corevault_content_age_seconds)", "age"),
    ("Open reservations", "short", "max by (state) (corevault_reservations)", "{{state}}"),
    (
        "Refusals because of the budget, per minute",
        "short",
        "max(rate(corevault_ledger_refusals_total[5m])) * 60",
        "refusals",
    ),
    ("Frozen accounts", "short", "max by (cause) (corevault_ledger_accounts_frozen)", "{{cause}}"),
    ("Lost attempts per hour", "short", "max(increase(corevault_job_attempts_lost_total[1h]))", "attempts"),
    ("Time since the oldest lease expired", "s", "max(corevault_job_lease_overdue_seconds)", "seconds"),
    ("Database", "bool", "min(corevault_database_up)", "database"),
    ("Sweeper", "bool", "max(corevault_sweeper_up)", "sweeper"),
    ("Evidence of the privacy audit", "short", "max by (moment) (corevault_continuous_audit_evidence)", "{{moment}}"),
    ("Openings refused by the audit", "bool", "max by (cause) (corevault_continuous_audit_refuses)", "{{cause}}"),
    ("Answers of the audit per second", "short", "max(rate(corevault_continuous_audit_answers_total[5m]))", "answers"),
    ("Time since the last batch of the audit", "s", "max(corevault_continuous_audit_age_seconds)", "age"),
    ("Time to detect a small defect", "s", "max(corevault_continuous_audit_detection_seconds)", "expected"),
    ("Audit without power", "bool", "max(corevault_continuous_audit_power_lost)", "lost"),
    ("Audit entries not yet in the chain", "short", "max(corevault_audit_unchained)", "entries"),
)


def dashboard() -> dict[str, Any]:
    """Make the dashboard in Grafana's import format."""
    source = {"name": "source", "type": "datasource", "query": "prometheus", "label": "Prometheus"}
    return {
        "uid": "corevault",
        "title": "Corevault",
        "tags": ["corevault"],
        "schemaVersion": 39,
        "refresh": "30s",
        "time": {"from": "now-6h", "to": "now"},
        "templating": {"list": [source]},
        "panels": [_panel(number, *panel) for number, panel in enumerate(PANELS)],
    }


def _panel(number: int, title: str, unit: str, query: str, legend: str) -> dict[str, Any]:
    place = {"x": number % COLUMNS * WIDTH, "y": number // COLUMNS * HEIGHT, "w": WIDTH, "h": HEIGHT}
    target = {"refId": "A", "datasource": SOURCE, "expr": query, "legendFormat": legend}
    return {
        "id": number + 1,
        "type": "timeseries",
        "title": title,
        "datasource": SOURCE,
        "gridPos": place,
        "fieldConfig": {"defaults": {"unit": unit, "min": 0}, "overrides": []},
        "targets": [target],
    }


def text() -> str:
    return json.dumps(dashboard(), indent=2) + "\n"


if __name__ == "__main__":
    FILE.write_text(text())
    sys.exit(0)
