"""Settings come from the environment, with defaults below the data directory."""

import re
from pathlib import Path

import pytest
from pydantic import ValidationError
from sqlalchemy import make_url

from app.config import SECRETS, Settings
from app.setting_faults import describe_faults


def test_by_default_one_folder_contains_everything(tmp_path: Path) -> None:
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


def test_child_processes_read_the_same_settings(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
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
        ("MAX_EPSILON", "1000.1"),
        ("MAX_ROWS", "-1"),
        ("LEASE_SECONDS", "nan"),
        ("LOG_LEVEL", "all"),
        ("TRUSTED_PROXIES", "proxy.example"),
    ],
)
def test_invalid_settings_are_refused(monkeypatch: pytest.MonkeyPatch, name: str, value: str) -> None:
    monkeypatch.setenv(f"COREVAULT_{name}", value)
    with pytest.raises(ValidationError):
        Settings()


BAD_VALUES = ("x y", "-1", "0", "nan", "inf", "1.5", "65", "1001", "9" * 5000, "[", "http://[", "~nobody-here/x", "a=b")


@pytest.mark.parametrize("name", Settings.model_fields)
def test_faults_are_named_with_what_is_required_and_no_value(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for value in BAD_VALUES:
        monkeypatch.setenv(f"COREVAULT_{name.upper()}", value)
        try:
            Settings()
        except ValidationError as error:
            words = describe_faults(error)
            assert words.startswith(f"COREVAULT_{name.upper()} must be ")
            assert ";" not in words
            assert not re.search(r"nobody|http://\[|valid|Input|parse|999", words)


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("MAX_EPSILON", "0", "must be greater than 0"),
        ("MAX_EPSILON", "1000.1", "must be at most 1000"),
        ("KEY_BACKUP_DAYS", "-1", "must be at least 0"),
        ("MAX_ROWS", "many", "must be a whole number"),
        ("BEHIND_TLS", "perhaps", "must be 1 or 0"),
        ("LOG_LEVEL", "all", "must be debug, info, warning or error"),
        ("OIDC_ISSUER", "http://issuer.example", "must be a URL that starts with https://"),
        ("TRUSTED_PROXIES", "proxy.example", "must be networks such as 10.0.0.0/8, separated by commas"),
        ("STORAGE_URL", "ftp://files.example", "must be file:///absolute/path or s3://bucket/prefix"),
        (
            "DATABASE_URL",
            "mysql://root:secret@db/name",
            "must be postgresql://user@host/name or sqlite:////absolute/path",
        ),
    ],
)
def test_a_fault_states_what_is_required(monkeypatch: pytest.MonkeyPatch, name: str, value: str, words: str) -> None:
    monkeypatch.setenv(f"COREVAULT_{name}", value)
    with pytest.raises(ValidationError) as refusal:
        Settings()
    assert describe_faults(refusal.value) == f"COREVAULT_{name} {words}"


def test_all_faults_are_named_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COREVAULT_MAX_ROWS", "0")
    monkeypatch.setenv("COREVAULT_LOG_LEVEL", "all")
    with pytest.raises(ValidationError) as refusal:
        Settings()
    assert describe_faults(refusal.value) == (
        "COREVAULT_LOG_LEVEL must be debug, info, warning or error; COREVAULT_MAX_ROWS must be greater than 0"
    )


def test_lists_are_separated_by_commas(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COREVAULT_ALLOWED_HOSTS", "vault.example, 10.1.2.3 ,")
    assert Settings().allowed_hosts == ("vault.example", "10.1.2.3")
    monkeypatch.setenv("COREVAULT_ALLOWED_HOSTS", "")
    assert Settings().allowed_hosts == ()


DOCS = Path(__file__).parents[2] / "docs" / "reference" / "settings.md"


def test_secrets_may_be_in_files(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "password").write_text("p@ss/wörd\n")
    (tmp_path / "broker").write_text("redis://:of-redis@redis:6379/0\n")
    monkeypatch.setenv("COREVAULT_DATABASE_URL", "postgresql+psycopg://corevault:old@postgres/corevault")
    monkeypatch.setenv("COREVAULT_DATABASE_PASSWORD_FILE", str(tmp_path / "password"))
    monkeypatch.setenv("COREVAULT_BROKER_URL_FILE", str(tmp_path / "broker"))
    settings = Settings()
    assert make_url(settings.database_url).password == "p@ss/wörd"
    assert make_url(settings.database_url).host == "postgres"
    assert settings.broker_url == "redis://:of-redis@redis:6379/0"
    told = settings.environment()
    assert not any("p%40ss" in value or "p@ss" in value or "of-redis" in value for value in told.values())
    for name, value in told.items():
        monkeypatch.setenv(name, value)
    assert Settings() == settings


@pytest.mark.parametrize("name", SECRETS)
@pytest.mark.parametrize("fault", ["both", "missing"])
def test_a_secret_in_two_places_or_no_file_is_refused_by_name(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, name: str, fault: str
) -> None:
    file = tmp_path / "secret"
    if fault == "both":
        file.write_text("x")
        monkeypatch.setenv(f"COREVAULT_{name.upper()}", "y")
    monkeypatch.setenv(f"COREVAULT_{name.upper()}_FILE", str(file))
    with pytest.raises(ValidationError) as refusal:
        Settings()
    assert describe_faults(refusal.value).startswith(
        f"COREVAULT_{name.upper()}_FILE must be the path of a readable file"
    )
    assert str(file) not in str(refusal.value)


def test_every_setting_has_one_row_in_the_table() -> None:
    rows = [line.split("|")[1] for line in DOCS.read_text().splitlines() if line.startswith("| `COREVAULT_")]
    named = [name for row in rows for name in re.findall(r"`(?:COREVAULT|…)_([A-Z_]+)`", row)]
    assert sorted(named) == sorted(name.upper() for name in Settings.model_fields)


def test_every_secret_is_marked_in_the_table() -> None:
    for line in DOCS.read_text().splitlines():
        if line.startswith("| `COREVAULT_"):
            names = re.findall(r"`(?:COREVAULT|…)_([A-Z_]+)`", line.split("|")[1])
            assert ("¹" in line.split("|")[1]) == any(name.lower() in SECRETS for name in names), line


@pytest.mark.parametrize("scheme", ["postgres", "postgresql", "postgresql+psycopg", "POSTGRES"])
def test_every_spelling_of_postgresql_is_accepted(scheme: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The password comes from a file, and a child process gets the same settings."""
    (tmp_path / "password").write_text("p@ss\n")
    monkeypatch.setenv("COREVAULT_DATABASE_URL", f"{scheme}://corevault@postgres:5433/name?sslmode=require")
    monkeypatch.setenv("COREVAULT_DATABASE_PASSWORD_FILE", str(tmp_path / "password"))
    settings = Settings()
    assert settings.database_url == "postgresql+psycopg://corevault:p%40ss@postgres:5433/name?sslmode=require"
    for name, value in settings.environment().items():
        monkeypatch.setenv(name, value)
    assert Settings() == settings
