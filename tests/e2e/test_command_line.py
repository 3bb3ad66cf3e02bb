"""The main job on the command line: check, upload, price, run, download, verify; datasets are given by name."""

import json
from collections.abc import Callable
from pathlib import Path

import httpx
import numpy as np
import pytest
from corevault import Client, Schema, binary, categorical, integer, real
from corevault.cli import commands
from corevault.cli.main import main

from tests.e2e.house import House, table

pytestmark = pytest.mark.process

SCHEMA = Schema(integer("age", 0, 100), real("dose", -5, 5), categorical("group", ["a", "b", "c"]), binary("sick"))
MODEL = ["--features", "age,dose,group", "--target", "sick", "--size", "20"]
Run = Callable[..., str]


@pytest.fixture
def run(house: House, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """Runs a command as a new owner; returns its output."""
    key = house.new_key("owner")

    def connect(url: str | None = None) -> Client:
        return Client(house.url, key, transport=httpx.HTTPTransport(verify=False))

    monkeypatch.setattr(commands, "connect", connect)

    def call(*arguments: str, code: int = 0) -> str:
        assert main(arguments) == code, capsys.readouterr().err
        return capsys.readouterr().out.strip()

    with connect() as client:
        client.datasets.create("command-line", SCHEMA, slots=2000, epsilon=2.0, delta=1e-6)
    return call


def test_the_main_job_on_the_command_line(run: Run, tmp_path: Path) -> None:
    path, points = tmp_path / "clinic.csv", tmp_path / "points.npz"
    path.write_bytes(table(1998))
    (dataset,) = run("datasets", "-q").splitlines()
    run("check", str(path), "--dataset", "command-line")
    assert run("upload", "command-line", str(path), "-q") == dataset
    rows = json.loads(run("quote", "command-line", *MODEL, "--epsilon", "0.5", "1.5", "9", "--json"))
    assert [row["affordable"] for row in rows] == [True, True, False]
    bought = ("run", "command-line", *MODEL, "--epsilon", "1.5", "--key", "once", "-o", str(points), "-q")
    release = run(*bought)
    assert run(*bought) == release  # the same key buys nothing
    with np.load(points) as arrays:
        assert arrays["u"].shape == (20, 5)
    assert run("releases", "--dataset", "command-line", "-q") == release
    assert json.loads(run("verify", release, "--json"))["release_id"] == release
    run("download", release, "-o", str(tmp_path / "points.csv"))
    assert len((tmp_path / "points.csv").read_text().splitlines()) == 21
    assert json.loads(run("budget", "command-line", "--json"))["jobs"]["settled"] == 1
    run("run", "command-line", *MODEL, "--epsilon", "1.9", code=3)
    run("budget", "unknown", code=4)
    run("audit-log", code=4)
