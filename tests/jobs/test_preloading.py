"""The API loads the libraries of pricing when it starts."""

import subprocess
import sys
import threading

import anyio
import pytest

from app.jobs import preloading
from app.main import create_app
from tests.factories.worker import House

SCRIPT = """
import sys
from dataclasses import replace
from app.main import create_app
from app.inference import dry_run
from app.jobs import preloading
from app.jobs.planning import NoiseCache, make_plan

if "preload" in sys.argv:
    preloading.load_pricing()
before = set(sys.modules)
request = replace(preloading._WISH.request, method="dp-psvi")
for wish in preloading._WISH, replace(preloading._WISH, request=request, epsilon=0.5):
    plan = make_plan(wish, preloading._FACTS, 1e-6, NoiseCache(), lambda _: True)
    dry_run.carry_out(plan, preloading._FACTS, to_the_end=False)
print(*sorted(set(sys.modules) - before))
"""


def _list_modules_of_a_first_quote(*arguments: str) -> list[str]:
    command = [sys.executable, "-c", SCRIPT, *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()


def test_a_first_quote_after_loading_imports_nothing() -> None:
    assert "dp_accounting" in _list_modules_of_a_first_quote()
    assert _list_modules_of_a_first_quote("preload") == []


def test_the_api_loads_pricing_when_it_starts(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    loaded = list[str]()
    monkeypatch.setattr(preloading, "load_pricing", lambda: loaded.append("pricing"))
    application = create_app(house.services)

    async def start_and_stop() -> None:
        async with application.router.lifespan_context(application):
            pass

    anyio.run(start_and_stop)
    assert loaded == ["pricing"]


def test_a_failure_to_load_is_logged_in_one_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail() -> None:
        raise ImportError("/a/path")

    monkeypatch.setattr(preloading, "load_pricing", fail)
    with pytest.raises(KeyError), preloading.preload_pricing():
        raise KeyError
    printed = capsys.readouterr()
    assert "ImportError" in printed.out
    assert "/a/path" not in printed.out + printed.err
    assert "preload" not in [thread.name for thread in threading.enumerate()]
