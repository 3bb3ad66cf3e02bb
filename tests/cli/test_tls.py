"""Other machines can reach the API only with TLS: allowed hosts, and a real start with a certificate."""

import os
import socket
import ssl
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest
import typer

from app.cli import installation
from app.cli.failures import MISUSED
from app.cli.sockets import check_bind
from app.config import Settings
from tests.factories.certificates import Authority
from tests.factories.datasets import problem

COREVAULTD = Path(sys.executable).parent / "corevaultd"
PATIENCE_SECONDS = 60
ELSEWHERE = ["0.0.0.0", "::", "192.0.2.1", "2001:db8::1", "fe80::1", "vault.example", "localhost.example", "127.1", ""]


@pytest.mark.parametrize("host", ELSEWHERE)
def test_reachable_address_without_tls_is_refused(tmp_path: Path, host: str) -> None:
    with pytest.raises(typer.Exit) as refusal:
        check_bind(host, Settings(data_dir=tmp_path))
    assert refusal.value.exit_code == MISUSED


@pytest.mark.parametrize("host", ["127.0.0.1", "127.8.8.8", "::1", "localhost"])
def test_loopback_without_tls_is_allowed(tmp_path: Path, host: str) -> None:
    check_bind(host, Settings(data_dir=tmp_path))


@pytest.mark.parametrize("host", ELSEWHERE)
def test_reachable_address_with_certificate_or_proxy_is_allowed(tmp_path: Path, host: str) -> None:
    check_bind(host, Settings(data_dir=tmp_path, tls_cert=tmp_path / "c.pem", tls_key=tmp_path / "k.pem"))
    check_bind(host, Settings(data_dir=tmp_path, behind_tls=True))


@contextmanager
def _api(settings: Settings, host: str) -> Iterator[tuple[subprocess.Popen[str], int]]:
    """A running ``corevaultd api`` and its port."""
    installation.migrate(settings)
    installation.create_keys(settings)
    with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET) as probe:
        probe.bind((host, 0))
        port = probe.getsockname()[1]
    others = {name: value for name, value in os.environ.items() if not name.startswith("COREVAULT_")}
    process = subprocess.Popen(
        [str(COREVAULTD), "api", "--host", host, "--port", str(port)],
        env=others | settings.environment(),
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        yield process, port
    finally:
        process.terminate()
        process.communicate(timeout=PATIENCE_SECONDS)


def _live(client: httpx.Client, process: subprocess.Popen[str]) -> None:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while time.monotonic() < deadline:
        assert process.poll() is None, process.communicate()[1]
        try:
            assert client.get("/health/live").status_code == 200
        except httpx.ConnectError:
            time.sleep(0.1)
        else:
            return
    raise AssertionError("it never answered")


@pytest.mark.process
@pytest.mark.sqlite
@pytest.mark.parametrize(("host", "called"), [("127.0.0.1", "127.0.0.1"), ("::1", "[::1]")])
def test_api_with_a_certificate_accepts_only_tls(tmp_path: Path, host: str, called: str) -> None:
    (tmp_path / "tls").mkdir()
    authority = Authority(tmp_path / "tls")
    certificate, key = authority.vouch_for("vault.example", "127.0.0.1", "::1")
    settings = Settings(data_dir=tmp_path / "data", tls_cert=certificate, tls_key=key, allowed_hosts=("vault.example",))
    trusting = ssl.create_default_context(cafile=str(authority.file))
    with _api(settings, host) as (process, port):
        with httpx.Client(base_url=f"https://{called}:{port}", verify=trusting) as client:
            _live(client, process)
            assert client.get("/v1/me").status_code == 401
            assert client.get("/v1/me", headers={"Host": f"vault.example:{port}"}).status_code == 401
            problem(client.get("/v1/me", headers={"Host": "evil.example"}), 422, "invalid_request")
        with pytest.raises(httpx.TransportError):
            httpx.get(f"http://{called}:{port}/health/live")
        with pytest.raises(httpx.ConnectError):
            httpx.get(f"https://{called}:{port}/health/live", verify=ssl.create_default_context())


@pytest.mark.process
@pytest.mark.sqlite
@pytest.mark.parametrize("fault", ["missing", "no certificate", "another's key"])
def test_unusable_certificate_is_reported_in_one_line(tmp_path: Path, fault: str) -> None:
    certificate, key = Authority(tmp_path).vouch_for("127.0.0.1")
    if fault == "missing":
        certificate.unlink()
    elif fault == "no certificate":
        certificate.write_text("canary-7461")
    else:
        (tmp_path / "other").mkdir()
        _, key = Authority(tmp_path / "other").vouch_for("127.0.0.1")
    settings = Settings(data_dir=tmp_path / "data", tls_cert=certificate, tls_key=key)
    with _api(settings, "127.0.0.1") as (process, _):
        _, message = process.communicate(timeout=PATIENCE_SECONDS)
    assert process.returncode in {1, MISUSED}
    assert "COREVAULT_TLS_CERT" in message
    assert len(message.splitlines()) == 1, message
    assert "canary-7461" not in message
