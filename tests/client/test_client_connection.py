"""Addresses and keys from arguments, the environment and the file of ``corevault login``."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import httpx
import pytest
from corevault import Client, InvalidArgument, NotFound, connect
from corevault.connection import Credentials, find_credentials, find_file, read_file, write_file
from corevault.errors import UnreadableSource

from tests.client.fake import DATASET, JOB, Script, ok

ME = {"id": "key_1", "name": "ana", "role": "analyst"}
URL = "https://vault.test"


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty environment, whose credentials would be in this file."""
    for name in ("COREVAULT_URL", "COREVAULT_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    path = tmp_path / "folder" / "credentials.json"
    monkeypatch.setenv("COREVAULT_CREDENTIALS", str(path))
    return path


def _authorization(client: Client, script: Script) -> str:
    with client:
        client.me()
    return str(script.seen[-1].headers.get("Authorization", ""))


def test_the_environment_names_server_and_key(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COREVAULT_URL", URL)
    monkeypatch.setenv("COREVAULT_API_KEY", "cv_env")
    script = Script([ok(ME)])
    client = Client.from_env(transport=httpx.MockTransport(script), max_retries=0)
    assert repr(client) == "Client('https://vault.test')"
    assert _authorization(client, script) == "Bearer cv_env"


def test_the_file_is_used_where_the_environment_is_silent(file: Path) -> None:
    write_file(Credentials(URL, "cv_file"), file)
    assert file.stat().st_mode & 0o777 == 0o600
    assert file.parent.stat().st_mode & 0o777 == 0o700
    script = Script([ok(ME)])
    assert _authorization(connect(transport=httpx.MockTransport(script)), script) == "Bearer cv_file"
    write_file(Credentials(URL, None), file)  # replaces it
    assert connect(transport=httpx.MockTransport(script)) is not None
    assert [path.name for path in file.parent.iterdir()] == ["credentials.json"]


def test_arguments_come_before_the_environment_and_the_file() -> None:
    environment = {"COREVAULT_URL": URL, "COREVAULT_API_KEY": "cv_env", "COREVAULT_CREDENTIALS": "/nowhere"}
    assert find_credentials(None, "cv_given", environment) == (URL, "cv_given")
    assert find_credentials(f"{URL}/", None, environment) == (f"{URL}/", "cv_env")


def test_a_key_is_never_sent_to_another_address(file: Path) -> None:
    write_file(Credentials(URL, "cv_file"), file)
    other = "https://other.test"
    environment = {"COREVAULT_CREDENTIALS": str(file)}
    assert find_credentials(other, None, environment) == (other, None)
    assert find_credentials(None, None, environment | {"COREVAULT_URL": other}) == (other, None)
    both = environment | {"COREVAULT_URL": URL, "COREVAULT_API_KEY": "cv_env"}
    assert find_credentials(other, None, both) == (other, None)


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o620, 0o602])
def test_a_file_that_others_can_read_is_refused(file: Path, mode: int) -> None:
    write_file(Credentials(URL, "cv_file"), file)
    file.chmod(mode)
    with pytest.raises(InvalidArgument, match="chmod 600"):
        connect()


def test_a_file_of_another_user_is_refused(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_file(Credentials(URL, "cv_file"), file)
    owner = os.geteuid() + 1
    monkeypatch.setattr(os, "geteuid", lambda: owner)
    with pytest.raises(InvalidArgument, match="another user"):
        connect()


@pytest.mark.parametrize("content", ["", "[]", '"text"', "{}", '{"url": 3}', '{"url": "https://a", "api_key": 3}'])
def test_a_file_of_another_form_is_refused(file: Path, content: str) -> None:
    file.parent.mkdir()
    file.write_text(content)
    file.chmod(0o600)
    with pytest.raises(InvalidArgument, match="run corevault login again"):
        connect()


def test_files_that_cannot_be_used_are_explained(file: Path, tmp_path: Path) -> None:
    with pytest.raises(InvalidArgument, match="COREVAULT_URL, pass base_url, or run corevault login"):
        connect()
    with pytest.raises(UnreadableSource, match="run corevault login again"):
        read_file(tmp_path)
    (tmp_path / "file").touch()
    with pytest.raises(UnreadableSource, match="COREVAULT_CREDENTIALS"):
        write_file(Credentials(URL, None), tmp_path / "file" / "credentials.json")
    wrong: Any = ("a", "b")
    with pytest.raises(InvalidArgument, match="must be Credentials"):
        write_file(wrong, file)


def test_the_file_has_a_usual_place() -> None:
    assert find_file({"XDG_CONFIG_HOME": "/c"}) == Path("/c/corevault/credentials.json")
    assert find_file({}) == Path.home() / ".config/corevault/credentials.json"


def test_credentials_do_not_show_the_key() -> None:
    assert "cv_1" not in repr(Credentials(URL, "cv_1"))


def _named(*names: tuple[str, str, str]) -> httpx.Response:
    items = [DATASET | {"id": each, "name": name, "status": status} for each, name, status in names]
    return ok({"items": items, "next_cursor": None})


def test_a_name_finds_its_dataset() -> None:
    script = Script([_named(("ds_7", "adult", "deleted"), ("ds_8", "adult", "ready")), ok(DATASET)])
    with script.client() as client:
        client.datasets.get("adult")
    assert [request.url.path for request in script.seen] == ["/v1/datasets", "/v1/datasets/ds_8"]


def test_a_name_is_taken_in_jobs_and_lists() -> None:
    page: dict[str, Any] = {"items": [], "next_cursor": None}
    script = Script([_named(("ds_8", "adult", "ready")), ok(page), _named(("ds_8", "adult", "ready")), ok(page)])
    with script.client() as client:
        client.jobs.list(dataset_id="adult")
        client.releases.list(dataset_id="adult")
    assert [request.url.params.get("dataset_id") for request in script.seen] == [None, "ds_8", None, "ds_8"]
    assert JOB["dataset_id"] == "ds_1"


def test_unknown_and_ambiguous_names_are_refused() -> None:
    script = Script([_named(("ds_7", "adult", "ready"), ("ds_8", "adult", "created"))])
    with script.client() as client:
        with pytest.raises(InvalidArgument, match="pass one of these ids: ds_7, ds_8"):
            client.datasets.budget("adult")
        with pytest.raises(NotFound, match="No dataset that you may see has the name 'Adult'"):
            client.datasets.budget("Adult")


def test_importing_the_package_imports_no_numerical_library() -> None:
    code = """
import sys, corevault
assert not {"numpy", "scipy", "httpx", "rich", "pandas"} & set(sys.modules)
from corevault import Client
assert not {"scipy", "pandas", "pyarrow"} & set(sys.modules)
"""
    subprocess.run([sys.executable, "-c", code], check=True)


def test_every_public_name_is_found() -> None:
    import corevault  # noqa: PLC0415 - the names that it offers

    assert {"connect", "combine", "Client"} <= set(dir(corevault))
    for name in corevault.__all__:
        assert getattr(corevault, name) is not None
    assert set(corevault._HOMES) == set(corevault.__all__)
    with pytest.raises(AttributeError, match="no attribute 'client_'"):
        _ = corevault.client_
