"""The compose file: valid, hardened, and with least rights. No daemon is needed."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from app.config import SECRETS, Settings
from workers.celery_worker import STOP_SECONDS

ROOT = Path(__file__).parents[2]
COMPOSE: dict[str, Any] = yaml.safe_load((ROOT / "docker-compose.yml").read_text())
SERVICES: dict[str, dict[str, Any]] = COMPOSE["services"]
OURS = ["keys", "migrate", "api", "worker", "maintenance"]
RIGHTS = {
    "postgres": {"database": "rw"},
    "redis": {},
    "keys": {"private-keys": "rw", "api-keys": "rw"},
    "migrate": {"wrapped-keys": "rw", "api-keys": "ro"},
    "api": {"api-keys": "ro", "incoming": "rw", "released": "ro", "wrapped-keys": "rw", "mark": "ro"},
    "worker": {
        "private-keys": "ro",
        "incoming": "rw",
        "released": "rw",
        "wrapped-keys": "rw",
        "vault": "rw",
        "mark": "rw",
    },
    "maintenance": {"private-keys": "rw", "api-keys": "rw", "released": "ro", "wrapped-keys": "rw", "mark": "rw"},
}
"""Service -> volume -> mode: every access to a volume."""
ROLES = {"migrate": "owner", "api": "service", "worker": "service", "maintenance": "service"}
PASSWORDS = {
    "postgres": {"postgres_password", "owner_password", "service_password"},
    "redis": {"redis_password"},
    "keys": set(),
    "migrate": {"owner_password"},
    "api": {"service_password", "redis_password"},
    "worker": {"service_password", "redis_password"},
    "maintenance": {"service_password"},
}


def run(tool: str, *arguments: str) -> "subprocess.CompletedProcess[str]":
    command = [str(Path(sys.executable).with_name(tool)), *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT)


def volumes(service: str) -> dict[str, tuple[str, str]]:
    """Return volume -> place and mode of its mount."""
    mounted: dict[str, tuple[str, str]] = {}
    for each in SERVICES[service].get("volumes", []):
        name, place, *mode = each.split(":")
        mounted[name] = (place, mode[0] if mode else "rw")
    return mounted


def test_the_compose_file_is_valid() -> None:
    checked = run("check-jsonschema", "--builtin-schema", "vendor.compose-spec", "docker-compose.yml")
    assert checked.returncode == 0, checked.stdout + checked.stderr


def test_the_dockerfile_passes_hadolint() -> None:
    checked = run("hadolint", "--failure-threshold", "info", "Dockerfile")
    assert checked.returncode == 0, checked.stdout + checked.stderr


@pytest.mark.parametrize("service", SERVICES)
def test_each_service_has_access_to_its_areas_only(service: str) -> None:
    """W1: only the worker mounts the vault. No service has both vault and writable keys."""
    assert {name: mode for name, (_, mode) in volumes(service).items()} == RIGHTS[service]


def test_every_volume_is_declared_and_used() -> None:
    assert set(COMPOSE["volumes"]) == {name for service in SERVICES for name in volumes(service)}


@pytest.mark.parametrize("service", ["api", "worker", "maintenance"])
def test_settings_point_to_mounted_places(service: str) -> None:
    """Each area's setting names the place where the area's volume is mounted."""
    environment, mounted = SERVICES[service]["environment"], volumes(service)
    for volume, (place, _) in mounted.items():
        setting = volume.replace("-", "_").upper()
        if volume == ("api-keys" if service == "api" else "private-keys"):
            assert environment["COREVAULT_KEYS_DIR"] == place
        elif volume == "api-keys":
            assert place in SERVICES["keys"]["command"]  # --api-share: no setting points there
        else:
            assert environment[f"COREVAULT_{setting}_URL"] == f"file://{place}"
    assert ("COREVAULT_VAULT_URL" in environment) == (service == "worker")


@pytest.mark.parametrize("service", OURS)
def test_every_setting_exists(service: str) -> None:
    known = {f"COREVAULT_{name.upper()}" for name in (*Settings.model_fields, *(f"{name}_file" for name in SECRETS))}
    assert set(SERVICES[service].get("environment", {})) <= known


@pytest.mark.parametrize("service", SERVICES)
def test_no_secret_is_in_an_environment(service: str) -> None:
    text = str(SERVICES[service].get("environment", {}))
    assert "${" not in text
    assert all(name.endswith("_FILE") for name in SERVICES[service].get("environment", {}) if "PASSWORD" in name)
    for name in SERVICES[service].get("secrets", []):
        assert COMPOSE["secrets"][name]["file"].startswith("./secrets/")


@pytest.mark.parametrize("service", SERVICES)
def test_each_service_gets_only_the_passwords_it_needs(service: str) -> None:
    assert set(SERVICES[service].get("secrets", [])) == PASSWORDS[service]
    assert set(COMPOSE["secrets"]) == set().union(*PASSWORDS.values())


@pytest.mark.parametrize(("service", "role"), ROLES.items())
def test_only_the_migration_connects_as_the_owner(service: str, role: str) -> None:
    """W11: the service's role can neither change nor remove ledger entries. No service is the superuser."""
    environment = SERVICES[service]["environment"]
    assert environment["COREVAULT_DATABASE_URL"] == f"postgresql+psycopg://corevault_{role}@postgres/corevault"
    assert environment["COREVAULT_DATABASE_PASSWORD_FILE"] == f"/run/secrets/{role}_password"
    assert SERVICES["migrate"]["command"] == ["corevaultd", "migrate", "--service-role", "corevault_service"]


@pytest.mark.parametrize("service", SERVICES)
def test_every_container_is_hardened(service: str) -> None:
    told = SERVICES[service]
    assert told["read_only"] is True
    assert told["cap_drop"] == ["ALL"]
    assert told["security_opt"] == ["no-new-privileges:true"]
    assert "cap_add" not in told
    assert "privileged" not in told
    assert int(told["user"].split(":")[0]) > 0
    assert all(each.split(":")[0] in {"/tmp", "/data", "/var/run/postgresql"} for each in told["tmpfs"])


def test_api_and_worker_are_two_users_of_one_group() -> None:
    users = {name: SERVICES[name]["user"] for name in OURS}
    api = {name for name, user in users.items() if user == "10001:10000"}
    worker = {name for name, user in users.items() if user == "10002:10000"}
    assert api == {"migrate", "api"}
    assert worker == {"keys", "worker", "maintenance"}
    dockerfile = (ROOT / "Dockerfile").read_text()
    assert "--gid 10000 corevault" in dockerfile
    assert "--uid 10001 --gid corevault api" in dockerfile
    assert "--uid 10002 --gid corevault worker" in dockerfile


def test_folders_of_the_image_have_the_modes_for_their_volumes() -> None:
    """A new volume takes owner and mode of its folder in the image."""
    made: dict[str, tuple[str, str]] = {}
    for line in (ROOT / "Dockerfile").read_text().splitlines():
        if "install -d" in line:
            words = line.replace("&&", "").replace("\\", "").split()
            owner, mode = words[words.index("-o") + 1], words[words.index("-m") + 1]
            made |= {word: (owner, mode) for word in words if word.startswith("/")}
    assert made == {
        "/areas/incoming": ("api", "2770"),
        "/areas/wrapped-keys": ("api", "2770"),
        "/areas/released": ("worker", "2750"),
        "/areas/mark": ("worker", "2750"),
        "/api-keys": ("worker", "2750"),
        "/areas/vault": ("worker", "0700"),
        "/keys": ("worker", "0700"),
        "/data": ("api", "0700"),
    }


def test_networks_separate_unrelated_services() -> None:
    reached = {name: set(told.get("networks", [])) for name, told in SERVICES.items()}
    assert reached == {
        "postgres": {"database"},
        "redis": {"broker"},
        "keys": set(),
        "migrate": {"database"},
        "api": {"database", "broker", "outside"},
        "worker": {"database", "broker"},
        "maintenance": {"database"},
    }
    assert SERVICES["keys"]["network_mode"] == "none"
    assert all(COMPOSE["networks"][name].get("internal") for name in ("database", "broker"))
    assert SERVICES["api"]["ports"] == ["127.0.0.1:8000:8000"]
    assert all("ports" not in told for name, told in SERVICES.items() if name != "api")


def test_every_service_has_a_health_check_and_waits_for_its_needs() -> None:
    for name in ("postgres", "redis", "api", "worker"):
        assert "healthcheck" in SERVICES[name], name
        assert SERVICES[name]["restart"] == "unless-stopped"
    for name in ("api", "worker"):
        assert SERVICES[name]["depends_on"] == {
            "keys": {"condition": "service_completed_successfully"},
            "migrate": {"condition": "service_completed_successfully"},
            "redis": {"condition": "service_healthy"},
        }
    assert SERVICES["migrate"]["depends_on"] == {
        "postgres": {"condition": "service_healthy"},
        "keys": {"condition": "service_completed_successfully"},
    }
    assert all(SERVICES[name]["restart"] == "no" for name in ("keys", "migrate", "maintenance"))


def test_maintenance_may_write_keys_and_starts_only_on_call() -> None:
    """Its commands need the database, the mark, the wrapped keys and writable keys.

    They are `keys rotate ledger` and `keys rewrap`.
    """
    assert {name for name, told in SERVICES.items() if "profiles" in told} == {"maintenance"}
    assert {"private-keys", "api-keys", "wrapped-keys", "mark"} <= {
        name for name, (_, mode) in volumes("maintenance").items() if mode == "rw"
    }


@pytest.mark.parametrize("service", SERVICES)
def test_a_shell_is_replaced_by_its_command(service: str) -> None:
    """The first process of a container gets the stop signal. A shell ignores it."""
    command = SERVICES[service].get("command", [])
    assert not command or command[0] not in {"sh", "bash"} or command[-1].startswith("exec ")


@pytest.mark.parametrize("service", ["api", "worker"])
def test_a_service_gets_enough_time_to_stop(service: str) -> None:
    """Twice the longest stop on an idle machine. The default is a kill after 10 s."""
    assert int(SERVICES[service]["stop_grace_period"].removesuffix("s")) >= 2 * STOP_SECONDS
