"""Settings: every one is an environment variable with the prefix ``COREVAULT_``; only composition roots read them.

What is not set lies below the data directory, so that one folder is a whole installation.
"""

from ipaddress import ip_network
from pathlib import Path
from typing import Annotated, Any

from pydantic import AfterValidator, BeforeValidator, Field, ValidationError, ValidationInfo, field_validator
from pydantic_core import PydanticCustomError
from pydantic_settings import BaseSettings, NoDecode, PydanticBaseSettingsSource, SettingsConfigDict

from app.privacy.discretisation import GREATEST_EPSILON
from app.vault.secret_files import UnreadableSecret, pass_on, secrets_from_files, with_password
from app.vault.stores import below

_PREFIX = "COREVAULT_"
_POSTGRESQL, _UNKNOWN_DATABASE = "postgresql+psycopg", "unknown_database"
_SCHEMES = {"sqlite": "sqlite", **dict.fromkeys(("postgres", "postgresql", _POSTGRESQL), _POSTGRESQL)}
SECRETS = ("database_url", "database_password", "broker_url", "broker_password")
"""Settings that may also be given as ``COREVAULT_X_FILE``, the path of a file that holds the value."""


def _split_list(value: object) -> object:
    return tuple(filter(None, (name.strip() for name in value.split(",")))) if isinstance(value, str) else value


def _check_pairs(pairs: tuple[str, ...]) -> tuple[str, ...]:
    if any(pair.rpartition("=")[2] not in {"admin", "owner", "analyst", "auditor"} for pair in pairs):
        raise ValueError("each entry is <value>=<role>")
    return pairs


Folder = Annotated[Path, AfterValidator(lambda path: path.expanduser().absolute())]
Seconds = Annotated[float, Field(gt=0)]
Count = Annotated[int, Field(gt=0)]
Names = Annotated[tuple[str, ...], NoDecode, BeforeValidator(_split_list)]
Networks = Annotated[Names, AfterValidator(lambda networks: tuple(str(ip_network(each)) for each in networks))]

HttpsUrl = Annotated[str, Field(pattern=r"^https://\S+$")]
Roles = Annotated[Names, AfterValidator(_check_pairs)]


def _database_url(url: str) -> str:
    """The URL with the driver that is installed; other databases and drivers are refused."""
    scheme, separator, rest = url.partition("://")
    known = _SCHEMES.get(scheme.lower())
    if known is None or not separator:
        raise PydanticCustomError(_UNKNOWN_DATABASE, "use postgresql://user@host/name or sqlite:////absolute/path")
    return f"{known}://{rest}"


def _below(*names: str) -> Any:
    return Field(default_factory=lambda data: data["data_dir"].joinpath(*names))


def _area(name: str) -> Any:
    return Field(default_factory=lambda data: below(data["storage_url"], name))


def _from_files() -> dict[str, Any]:
    try:
        return dict(secrets_from_files(_PREFIX, SECRETS))
    except UnreadableSecret as error:
        fault = PydanticCustomError("secret_file", "names no file, or stands beside the secret itself")
        raise ValidationError.from_exception_data(
            "Settings", [{"type": fault, "loc": (error.name,), "input": None}]
        ) from None


class Settings(BaseSettings):
    """The settings of API and worker; see ``docs/operations.md`` for how they are used together."""

    model_config = SettingsConfigDict(env_prefix=_PREFIX, env_ignore_empty=True, extra="ignore", frozen=True)

    data_dir: Folder = Path("corevault-data").absolute()
    """Everything that has no place of its own lies here."""
    database_password: str | None = Field(default=None, repr=False)
    """Put into ``database_url``, for who has it in a file of its own."""
    database_url: str = Field(default_factory=lambda data: f"sqlite:///{data['data_dir'] / 'corevault.sqlite3'}")
    """``postgresql://…`` (or ``postgres://…``) in production, else ``sqlite:///…``."""
    broker_password: str | None = Field(default=None, repr=False)
    """Put into ``broker_url``."""
    broker_url: str = "filesystem://"
    """Celery broker; ``redis://…`` or ``amqp://…`` in production. The filesystem one keeps messages in ``data_dir``."""
    storage_url: str = Field(default_factory=lambda data: (data["data_dir"] / "storage").as_uri())
    """Where the four areas lie that have no place of their own: ``file:///absolute/path`` or ``s3://bucket/prefix``."""
    incoming_url: str = _area("incoming")
    """Sealed uploads. The API writes, workers read and delete."""
    released_url: str = _area("released")
    """Representations of releases. Workers write, the API reads."""
    wrapped_keys_url: str = _area("wrapped-keys")
    """Datasets' keys in boxes that only workers open; never in one backup with the database."""
    vault_url: str = _area("vault")
    """Encrypted tables. Workers only."""
    key_backup_days: Annotated[int, Field(ge=0)] = 0
    """How long copies of the wrapped keys' area are kept elsewhere: deletion receipts state it."""
    keep_superseded_days: Annotated[float, Field(ge=0, allow_inf_nan=False)] = 0.0
    """How long a content is kept that a newer one has replaced and that no job reads."""
    mark_url: str = Field(default_factory=lambda data: (data["data_dir"] / "mark").as_uri())
    """Where the ledger's high-water mark lies: ``file:///absolute/folder`` or ``s3://bucket/prefix``. In production a
    volume or bucket that no restore of the database brings back; API and workers share it, workers write."""
    keys_dir: Folder = _below("keys")
    """Key files. The worker's folder holds all of them; the API needs none of the worker's secrets."""

    max_upload_bytes: Count = 16 * 2**30
    """Largest content as it is uploaded."""
    max_rows: Count = 200_000_000
    """Most rows of a content, and most slots of a dataset."""
    max_decoded_bytes: Count = 64 * 2**30
    """Largest content once decompressed and decoded."""
    max_datasets: Count = 1_000
    """Most datasets of one owner; deleted ones do not count."""
    max_active_jobs: Count = 500
    """Most jobs of one caller that wait or run."""
    max_open_uploads: Count = 16
    """Most resumable uploads of one owner that are under way."""
    max_keys: Count = 10_000
    """Most API keys that work, all together."""
    ingest_memory_bytes: Count = 2 * 2**30
    """Address space of the process that parses an upload."""
    max_epsilon: Annotated[float, Field(gt=0, le=GREATEST_EPSILON, allow_inf_nan=False)] = 20.0
    """Largest total budget of an account."""

    lease_seconds: Seconds = 10.0
    """How long a claimed run stays its worker's without a heartbeat."""
    heartbeat_seconds: Seconds = 2.0
    """How often a worker renews its lease."""
    sweep_seconds: Seconds = 1.0
    """How often runs that were lost are looked for."""
    run_limit_scale: Annotated[float, Field(gt=0, allow_inf_nan=False)] = 1.0
    """Stretches the limits of time and memory that follow from a run's plan, and the time that follows from an upload's
    size and declared table, for machines that are unusually slow."""
    worker_processes: Count = 1
    """Runs that one worker carries through at the same time."""
    partitions: Annotated[int, Field(ge=1, le=64)] = 1
    """Parts that a large query is split into, for as many worker processes; 1: no query is split."""
    split_rows: Count = 10_000_000
    """Rows that a job's largest query must be expected to read before it is split."""

    tls_cert: Folder | None = None
    """PEM file with the server's certificate chain."""
    tls_key: Folder | None = None
    """PEM file with the certificate's private key."""
    behind_tls: bool = False
    """A proxy in front of the API speaks TLS: allows a bind to other than loopback without a certificate."""
    allowed_hosts: Names = ()
    """Names that the API is called by, comma-separated; loopback and the address it is reached at always are."""
    trusted_proxies: Networks = ()
    """Networks of proxies whose ``X-Forwarded-For`` is believed, comma-separated; for limits by address."""
    requests_per_window: Count = 100
    """Requests that one key may send in a window, also all at once."""
    request_window_seconds: Count = 1
    """Length of that window, which moves."""
    failed_sign_ins_per_minute: Count = 120
    """Credentials that are none which one address may send; after that they are answered 429."""
    oidc_issuer: HttpsUrl | None = None
    """OpenID Connect: whose bearer tokens are taken beside API keys (needs the extra ``oidc``)."""
    oidc_audience: str | None = None
    """The name that tokens for this server carry in ``aud``."""
    oidc_jwks_url: HttpsUrl | None = None
    """Where the issuer's keys are, if not where its discovery document says."""
    oidc_ca_file: Folder | None = None
    """PEM file with the authorities that vouch for the issuer, instead of the system's."""
    oidc_role_claim: str = "roles"
    """Where a token says what its holder may be: names of members, with dots between."""
    oidc_roles: Roles = ("admin=admin", "owner=owner", "analyst=analyst", "auditor=auditor")
    """Values of that claim and our roles for them, comma-separated."""
    least_body_bytes_per_second: Annotated[int, Field(ge=0)] = 2**16
    """A body that is slower, on average over ``least_body_rate_seconds`` of waiting for it, is ended; 0: never."""
    least_body_rate_seconds: Seconds = 30.0
    header_seconds: Seconds = 20.0
    """How long a client may take over a request's headers, or over the rest of a body that is answered already."""
    unread_seconds: Seconds = 30.0
    """Over how long a client must read an answer, at 1 KiB a second or more, before its connection is ended."""
    otlp_endpoint: str | None = None
    """Collector of OpenTelemetry traces over HTTP, as in ``http://127.0.0.1:4318``; needs the extra ``tracing``."""
    metrics: bool = True
    """Whether ``/metrics`` answers."""
    log_level: Annotated[str, Field(pattern="^(debug|info|warning|error)$")] = "info"

    @field_validator("database_url", "broker_url")
    @classmethod
    def _complete(cls, url: str, info: ValidationInfo) -> str:
        return with_password(url, info.data.get(str(info.field_name).replace("_url", "_password")))

    @field_validator("database_url")
    @classmethod
    def _with_driver(cls, url: str) -> str:
        return _database_url(url)

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],  # noqa: ARG003  (named by the library)
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        *_: PydanticBaseSettingsSource,
        **__: PydanticBaseSettingsSource,
    ) -> tuple[Any, ...]:
        return init_settings, env_settings, _from_files

    @property
    def speaks_tls(self) -> bool:
        return self.tls_cert is not None and self.tls_key is not None

    def environment(self) -> dict[str, str]:
        """The same settings as environment variables, for child processes; secrets stay in their files."""
        values = self.model_dump(mode="json", exclude_none=True)
        plain = {f"{_PREFIX}{name.upper()}": _plain(value) for name, value in values.items() if name not in SECRETS}
        return plain | pass_on(_PREFIX, SECRETS, values)


def invalid_names(error: ValidationError) -> str:
    """The variables that are at fault, without their values; with our own words on it where there are some."""
    return ", ".join(sorted(_blamed(fault["loc"][0], fault["type"], fault["msg"]) for fault in error.errors()))


def _blamed(name: object, kind: str, message: str) -> str:
    variable = f"COREVAULT_{str(name).upper()}"
    return f"{variable} ({message})" if kind == _UNKNOWN_DATABASE else variable


def _plain(value: object) -> str:
    if isinstance(value, list):
        return ",".join(map(str, value))
    return str(value).lower() if isinstance(value, bool) else str(value)
