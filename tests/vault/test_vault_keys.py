"""Key files: created once, always complete, and loaded by role."""

import base64
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from nacl.public import PrivateKey
from nacl.signing import SigningKey

from app.vault.errors import VaultError
from app.vault.keys import create_keys, load_api_keys, load_worker_keys

SECRETS = ("opening.key", "ledger.key", "release.key")
PUBLICS = ("sealing.pub", "ledger.pub", "release.pub")
IDENTITY = "identity.key"


def contents(directory: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in directory.iterdir()}


def test_created_keys_are_readable_by_their_owner_only(tmp_path: Path) -> None:
    directory = tmp_path / "keys"
    create_keys(directory)
    assert set(contents(directory)) == {*SECRETS, *PUBLICS, IDENTITY, "fingerprint.key"}
    assert directory.stat().st_mode & 0o777 == 0o700
    assert {path.stat().st_mode & 0o777 for path in directory.iterdir()} == {0o600}


def test_public_keys_belong_to_their_secrets(tmp_path: Path) -> None:
    create_keys(tmp_path)
    api, worker = load_api_keys(tmp_path), load_worker_keys(tmp_path)
    assert bytes(PrivateKey(worker.opening_key).public_key) == api.sealing_key
    assert bytes(SigningKey(worker.release_seed).verify_key) == base64.b64decode(api.release_public)
    assert bytes(SigningKey(worker.ledger_seed).verify_key) == base64.b64decode(api.ledger_public)
    assert api.ledger_seed == worker.ledger_seed
    assert len({worker.opening_key, worker.release_seed, worker.ledger_seed}) == 3


def test_existing_keys_are_never_overwritten(tmp_path: Path) -> None:
    create_keys(tmp_path)
    before = contents(tmp_path)
    create_keys(tmp_path)
    assert contents(tmp_path) == before


def test_interrupted_creation_is_completed(tmp_path: Path) -> None:
    create_keys(tmp_path)
    before = contents(tmp_path)
    (tmp_path / "sealing.pub").unlink()
    create_keys(tmp_path)
    assert contents(tmp_path) == before


def test_racing_threads_agree_and_leave_no_temporary_file(tmp_path: Path) -> None:
    def create(directory: Path, barrier: threading.Barrier) -> bytes:
        barrier.wait()
        create_keys(directory)
        return load_worker_keys(directory).opening_key

    with ThreadPoolExecutor(8) as pool:
        for attempt in range(10):
            directory, barrier = tmp_path / str(attempt), threading.Barrier(8)
            seen = [pool.submit(create, directory, barrier) for _ in range(8)]
            assert len({future.result() for future in seen}) == 1
            assert set(contents(directory)) == {*SECRETS, *PUBLICS, IDENTITY, "fingerprint.key"}


def test_racing_processes_agree_on_the_keys(tmp_path: Path) -> None:
    code = (
        "import sys, pathlib; from app.vault.keys import *; d = pathlib.Path(sys.argv[1]); create_keys(d);"
        "print(load_api_keys(d).sealing_key.hex())"
    )
    command = [sys.executable, "-c", code, str(tmp_path / "keys")]
    children = [subprocess.Popen(command, stdout=subprocess.PIPE) for _ in range(3)]
    answers = {child.communicate()[0] for child in children}
    assert [child.returncode for child in children] == [0, 0, 0]
    assert len(answers) == 1


@pytest.mark.parametrize("lost", SECRETS)
def test_public_key_without_its_secret_is_refused(tmp_path: Path, lost: str) -> None:
    """A lost secret must not be replaced by one that does not match."""
    create_keys(tmp_path)
    (tmp_path / lost).unlink()
    with pytest.raises(VaultError):
        create_keys(tmp_path)
    assert not (tmp_path / lost).exists()


def test_public_key_of_another_secret_is_refused(tmp_path: Path) -> None:
    create_keys(tmp_path)
    create_keys(tmp_path / "other")
    (tmp_path / "sealing.pub").write_bytes((tmp_path / "other" / "sealing.pub").read_bytes())
    with pytest.raises(VaultError):
        create_keys(tmp_path)


def test_api_loads_neither_opening_nor_release_key(tmp_path: Path) -> None:
    """W1: the API's keys load without the worker's, and cannot open boxes or sign releases."""
    create_keys(tmp_path)
    worker = load_worker_keys(tmp_path)
    for name in ("opening.key", "release.key"):
        (tmp_path / name).unlink()
    api = load_api_keys(tmp_path)
    held = {api.sealing_key, api.ledger_seed, base64.b64decode(api.ledger_public), base64.b64decode(api.release_public)}
    assert not held & {worker.opening_key, worker.release_seed}
    with pytest.raises(VaultError):
        load_worker_keys(tmp_path)


def test_repr_of_keys_shows_no_secrets(tmp_path: Path) -> None:
    create_keys(tmp_path)
    api, worker = load_api_keys(tmp_path), load_worker_keys(tmp_path)
    shown = repr(api) + repr(worker)
    for secret in (worker.opening_key, worker.release_seed, worker.ledger_seed, api.identity_key):
        assert repr(secret) not in shown


def test_secret_that_other_users_can_read_is_refused(tmp_path: Path) -> None:
    create_keys(tmp_path)
    (tmp_path / "ledger.key").chmod(0o644)
    with pytest.raises(VaultError):
        load_api_keys(tmp_path)


@pytest.mark.parametrize("text", ["", "not base64!", base64.b64encode(b"short").decode(), "ä"])
def test_malformed_key_files_are_refused(tmp_path: Path, text: str) -> None:
    create_keys(tmp_path)
    (tmp_path / "sealing.pub").write_text(text, encoding="utf-8")
    with pytest.raises(VaultError):
        load_api_keys(tmp_path)
