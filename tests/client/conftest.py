"""Fixtures of the client's tests: sleeping without waiting, and commands with a scripted server."""

import time

import pytest
from corevault.cli import commands

from tests.client.fake import Answer, Script, Start


@pytest.fixture
def naps(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The durations of all calls of ``time.sleep``, which return at once."""
    slept: list[float] = []
    monkeypatch.setattr(time, "sleep", slept.append)
    return slept


@pytest.fixture
def start(monkeypatch: pytest.MonkeyPatch) -> Start:
    """Makes the commands talk to a server with these answers."""

    def begin(*answers: Answer) -> Script:
        script = Script(list(answers))
        monkeypatch.setattr(commands, "connect", lambda url: script.client())
        return script

    return begin
