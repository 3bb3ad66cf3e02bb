"""``corevaultd audit``: its output and its exit status."""

import json
from collections.abc import Iterator

import pytest
from typer.testing import CliRunner

from app.cli.commands import cli
from app.inference.audit import report

RUNNER = CliRunner()


@pytest.mark.long
def test_the_filter_is_audited_in_one_line_for_each_tree() -> None:
    found = RUNNER.invoke(cli, ["audit", "--section", "filter"])
    assert found.exit_code == 0
    lines = found.output.splitlines()
    assert lines[0] == "filter"
    assert all(line.startswith("  holds   epsilon") for line in lines[1:])


def test_json_has_every_record() -> None:
    found = RUNNER.invoke(cli, ["audit", "--section", "contributions", "--json"])
    assert found.exit_code == 0
    records = json.loads(found.output)["contributions"]
    assert {record["query"] for record in records} >= {"mean_sum", "information_sum"}


def test_w12_an_attack_that_exceeds_the_guarantee_fails_the_command(monkeypatch: pytest.MonkeyPatch) -> None:
    """W12: the exit status is 1."""

    def refute(_: report.Size) -> Iterator[report.Record]:
        yield {"noise": 1.0, "holds": False}

    monkeypatch.setitem(report.SECTIONS, "mechanism", refute)
    found = RUNNER.invoke(cli, ["audit", "--section", "mechanism", "--answers", "10"])
    assert found.exit_code == 1
    assert "REFUTED noise 1" in found.output


def test_an_unknown_section_is_refused() -> None:
    found = RUNNER.invoke(cli, ["audit", "--section", "everything"])
    assert found.exit_code == 2
    assert "the sections are contributions, mechanism" in found.output
