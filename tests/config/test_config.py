"""Settings come from the environment; what is not set lies below the data directory."""

from pathlib import Path

import pytest
from pydantic import ValidationError

from app.config import Settings


def test_one_folder_holds_everything_by_default(tmp_path: Path) -> None:
    settings = Settings(data_dir=tmp_path / "a folder")
    assert settings.database_url == f"sqlite:///{tmp_path}/a folder/corevault.sqlite3"
    assert settings.storage_url == f"file://{tmp_path}/a%20folder/storage"
    assert settings.broker_url == "filesystem://"
    assert settings.keys_dir == tmp_path / "a folder" / "keys"


def test_every_setting_is_an_environment_variable(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("COREVAULT_DATA_DIR", str(tmp_path))
    monkeypatch.setenv("COREVAULT_DATABASE_URL", "postgresql+psycopg://db/corevault")
    monkeypatch.setenv("COREVAULT_BEHIND_TLS", "1")
    monkeypatch.setenv("COREVAULT_TLS_CERT", "")
    settings = Settings()
    assert settings.database_url == "postgresql+psycopg://db/corevault"
    assert settings.behind_tls is True
    assert settings.tls_cert is None


def test_children_read_the_same_settings(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    settings = Settings(
        data_dir=tmp_path,
        tls_cert=tmp_path / "c.pem",
        tls_key=tmp_path / "k.pem",
        metrics=False,
        allowed_hosts=("vault.example", "::1"),
        trusted_proxies=("10.0.0.0/8",),
    )
    for name, value in settings.environment().items():
        monkeypatch.setenv(name, value)
    assert Settings() == settings


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("MAX_EPSILON", "inf"),
        ("MAX_EPSILON", "0"),
        ("MAX_ROWS", "-1"),
        ("LEASE_SECONDS", "nan"),
        ("LOG_LEVEL", "all"),
        ("TRUSTED_PROXIES", "proxy.example"),
    ],
)
def test_settings_without_a_meaning_are_refused(monkeypatch: pytest.MonkeyPatch, name: str, value: str) -> None:
    monkeypatch.setenv(f"COREVAULT_{name}", value)
    with pytest.raises(ValidationError):
        Settings()


def test_lists_are_separated_by_commas(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COREVAULT_ALLOWED_HOSTS", "vault.example, 10.1.2.3 ,")
    assert Settings().allowed_hosts == ("vault.example", "10.1.2.3")
    monkeypatch.setenv("COREVAULT_ALLOWED_HOSTS", "")
    assert Settings().allowed_hosts == ()
