"""Settings of API and worker, read from environment variables with the prefix ``COREVAULT_``.

Only composition roots read them. By default all files are below the data directory, so one folder is a complete
installation.
"""

from ipaddress import ip_network
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import urlsplit

from pydantic import AfterValidator, BeforeValidator, Field, ValidationError, ValidationInfo, field_validator
from pydantic_settings import BaseSettings, NoDecode, PydanticBaseSettingsSource, SettingsConfigDict

from app.privacy.discretisation import GREATEST_EPSILON
from app.setting_faults import make_fault, require_pattern
from app.vault.secret_files import UnreadableSecret, pass_on, read_secrets, set_password
from app.vault.stores import make_folder_url

_PREFIX = "COREVAULT_"
_POSTGRESQL = "postgresql+psycopg"
_SCHEMES = {"sqlite": "sqlite", **dict.fromkeys(("postgres", "postgresql", _POSTGRESQL), _POSTGRESQL)}
SECRETS = ("database_url", "database_password", "broker_url", "broker_password", "oidc_client_secret")
"""Settings that may also be given as ``COREVAULT_X_FILE``, the path of a file with the value."""


def _split_list(value: object) -> object:
    return tuple(filter(None, (name.strip() for name in value.split(",")))) if isinstance(value, str) else value


def _check_pairs(pairs: tuple[str, ...]) -> tuple[str, ...]:
    if any(pair.rpartition("=")[2] not in {"admin", "owner", "analyst", "auditor"} for pair in pairs):
        raise make_fault("must be entries such as staff=owner, with the roles admin, owner, analyst and auditor")
    return pairs


def _normalise_networks(networks: tuple[str, ...]) -> tuple[str, ...]:
    try:
        return tuple(str(ip_network(each)) for each in networks)
    except ValueError:
        raise make_fault("must be networks such as 10.0.0.0/8, separated by commas") from None


def _check_storage_url(url: str) -> str:
    try:
        is_known = urlsplit(url).scheme in {"file", "s3"}
    except ValueError:
        is_known = False
    if not is_known:
        raise make_fault("must be file:///absolute/path or s3://bucket/prefix")
    return url


def _resolve_path(path: Path) -> Path:
    try:
        return path.expanduser().absolute()
    except RuntimeError:
        raise make_fault("must be a path, and the user after its ~ must exist") from None


Folder = Annotated[Path, AfterValidator(_resolve_path)]
StorageUrl = Annotated[str, AfterValidator(_check_storage_url)]
Seconds = Annotated[float, Field(gt=0)]
Count = Annotated[int, Field(gt=0)]
Names = Annotated[tuple[str, ...], NoDecode, BeforeValidator(_split_list)]
Networks = Annotated[Names, AfterValidator(_normalise_networks)]

HttpsUrl = Annotated[str, require_pattern(r"https://\S+", "must be a URL that starts with https://")]
LogLevel = Annotated[str, require_pattern("debug|info|warning|error", "must be debug, info, warning or error")]
Scope = Annotated[
    str, require_pattern(r"(\S+ )*openid( \S+)*", "must be words such as openid profile, one of them openid")
]
Roles = Annotated[Names, AfterValidator(_check_pairs)]


def _add_driver(url: str) -> str:
    """Return the URL with the installed driver; other databases and drivers are refused."""
    scheme, separator, rest = url.partition("://")
    with_driver = _SCHEMES.get(scheme.lower())
    if with_driver is None or not separator:
        raise make_fault("must be postgresql://user@host/name or sqlite:////absolute/path")
    return f"{with_driver}://{rest}"


def _below(*names: str) -> Any:
    return Field(default_factory=lambda data: data["data_dir"].joinpath(*names))


def _area(name: str) -> Any:
    return Field(default_factory=lambda data: make_folder_url(data["storage_url"], name))


def _from_files() -> dict[str, Any]:
    try:
        return dict(read_secrets(_PREFIX, SECRETS))
    except UnreadableSecret as error:
        fault = make_fault("must be the path of a readable file, and the secret itself must not be set")
        raise ValidationError.from_exception_data(
            "Settings", [{"type": fault, "loc": (error.name,), "input": None}]
        ) from None


class Settings(BaseSettings):
    """The settings of API and worker; see ``docs/reference/settings.md`` for how they are used together."""

    model_config = SettingsConfigDict(env_prefix=_PREFIX, env_ignore_empty=True, extra="ignore", frozen=True)

    data_dir: Folder = Path("corevault-data").absolute()
    """Folder of all files and areas whose place no other setting names."""
    database_password: str | None = Field(default=None, repr=False)
    """Password that is put into ``database_url``."""
    database_url: str = Field(default_factory=lambda data: f"sqlite:///{data['data_dir'] / 'corevault.sqlite3'}")
    """URL of the database: ``postgresql://…`` (or ``postgres://…``) in production, else ``sqlite:///…``."""
    broker_password: str | None = Field(default=None, repr=False)
    """Password that is put into ``broker_url``."""
    broker_url: str = "filesystem://"
    """URL of the Celery broker: ``redis://…`` or ``amqp://…`` in production.

    The filesystem broker keeps its messages in ``data_dir``.
    """
    storage_url: StorageUrl = Field(default_factory=lambda data: (data["data_dir"] / "storage").as_uri())
    """Location of the four areas, unless an area has a separate setting.

    The form is ``file:///absolute/path`` or ``s3://bucket/prefix``.
    """
    incoming_url: StorageUrl = _area("incoming")
    """Area of sealed uploads. The API writes them; workers read and delete them."""
    released_url: StorageUrl = _area("released")
    """Area of the representations of releases. Workers write them; the API reads them."""
    wrapped_keys_url: StorageUrl = _area("wrapped-keys")
    """Area of the keys of datasets and uploads, sealed so that only workers can open them.

    Never back it up together with the database or the vault.
    """
    vault_url: StorageUrl = _area("vault")
    """Area of encrypted tables, of registers of series, and of sealed partial sums of split queries.

    Only workers use it.
    """
    key_backup_days: Annotated[int, Field(ge=0)] = 0
    """Days for which the operator keeps backups of the wrapped keys. Deletion receipts state them."""
    keep_superseded_days: Annotated[float, Field(ge=0, allow_inf_nan=False)] = 0.0
    """Days for which a replaced content is kept if no job reads it."""
    mark_url: StorageUrl = Field(default_factory=lambda data: (data["data_dir"] / "mark").as_uri())
    """Location of the ledger's high-water mark: ``file:///absolute/folder`` or ``s3://bucket/prefix``.

    In production use a volume or bucket that a restore of the database does not restore. API and workers share it;
    workers write it.
    """
    keys_dir: Folder = _below("keys")
    """Folder of the key files. Workers need all of them except ``identity.key``, which only the API needs.

    The API does not need the secrets of workers.
    """

    max_upload_bytes: Count = 16 * 2**30
    """Largest content as it is uploaded, in bytes."""
    max_rows: Count = 200_000_000
    """Largest number of rows of a content, and of slots of a dataset."""
    max_decoded_bytes: Count = 64 * 2**30
    """Largest content after decompression and decoding, in bytes."""
    max_datasets: Count = 1_000
    """Largest number of datasets of one owner; deleted ones do not count."""
    max_active_jobs: Count = 500
    """Largest number of waiting and running jobs of one caller."""
    max_open_uploads: Count = 16
    """Largest number of open resumable uploads of one owner."""
    max_keys: Count = 10_000
    """Largest number of API keys that are not revoked."""
    ingest_memory_bytes: Count = 2 * 2**30
    """Address space of the process that parses an upload, in bytes."""
    max_epsilon: Annotated[float, Field(gt=0, le=GREATEST_EPSILON, allow_inf_nan=False)] = 20.0
    """Largest epsilon of an account's limit."""

    lease_seconds: Seconds = 10.0
    """Time after the last heartbeat for which a claimed run stays with its worker."""
    heartbeat_seconds: Seconds = 2.0
    """Time between two renewals of a worker's lease."""
    sweep_seconds: Seconds = 1.0
    """Time between two searches for lost runs by the sweeper."""
    run_limit_scale: Annotated[float, Field(gt=0, allow_inf_nan=False)] = 1.0
    """Factor on limits of time and memory, for slow machines.

    It multiplies the limits of runs, which follow from their plans. It also multiplies the time limit of an upload,
    which follows from its size and the declared table.
    """
    worker_processes: Count = 1
    """Runs that one worker executes at the same time."""
    audit_share: Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)] = 0.01
    """Largest share of a worker's time for the continuous privacy audit; 0 turns it off."""
    audit_detection_seconds: Seconds = 86_400.0
    """Time within which the audit should detect a small defect. If it would take longer, ``/metrics`` shows it."""
    partitions: Annotated[int, Field(ge=1, le=64)] = 1
    """Number of parts of a large query, each for one worker process. At 1, queries are not split."""
    split_rows: Count = 10_000_000
    """Queries of a job are split if its largest query has at least this expected number of rows."""

    guide_dir: Folder | None = None
    """Folder of the documentation site that ``make docs`` builds; it is served at ``/docs/guide/``.

    The API reads the list of files when it starts.
    """
    tls_cert: Folder | None = None
    """PEM file with the server's certificate chain."""
    tls_key: Folder | None = None
    """PEM file with the certificate's private key."""
    behind_tls: bool = False
    """Whether a proxy terminates TLS. If so, the API may listen beyond loopback without a certificate."""
    allowed_hosts: Names = ()
    """Allowed names in the Host header, comma-separated.

    Loopback names and the address of the connection are always allowed.
    """
    trusted_proxies: Networks = ()
    """Networks of proxies whose ``X-Forwarded-For`` is trusted, comma-separated, for limits by address."""
    requests_per_window: Count = 100
    """Largest number of requests of one key in a window; a burst of all at once is allowed."""
    request_window_seconds: Count = 1
    """Length of this sliding window, in seconds."""
    failed_sign_ins_per_minute: Count = 120
    """Failed sign-ins of one IP address in a minute; further ones are answered with 429."""
    oidc_issuer: HttpsUrl | None = None
    """OpenID Connect issuer whose bearer tokens are accepted in addition to API keys.

    It needs the extra ``oidc``.
    """
    oidc_audience: str | None = None
    """Value of ``aud`` in tokens for this server."""
    oidc_client_id: str | None = None
    """Id of the dashboard at the issuer: people can then sign in there. It needs ``oidc_issuer``."""
    oidc_client_secret: str | None = Field(default=None, repr=False)
    """Secret of that client; a public client has none.

    ``COREVAULT_OIDC_CLIENT_SECRET_FILE`` may name a file with it.
    """
    oidc_scope: Scope = "openid"
    """Scopes that the dashboard asks for, separated by spaces; ``openid`` is one of them."""
    oidc_jwks_url: HttpsUrl | None = None
    """URL of the issuer's keys, instead of the one in its discovery document."""
    oidc_ca_file: Folder | None = None
    """PEM file with the certificate authorities for the issuer, instead of the system's."""
    oidc_role_claim: str = "roles"
    """Claim that states the caller's roles: member names, separated by dots."""
    oidc_roles: Roles = ("admin=admin", "owner=owner", "analyst=analyst", "auditor=auditor")
    """Values of that claim and the roles that they give, comma-separated."""
    least_body_bytes_per_second: Annotated[int, Field(ge=0)] = 2**16
    """Lowest accepted rate of a request body; 0 means no limit. A slower request is refused.

    The rate is an average over ``least_body_rate_seconds`` of waiting for the client.
    """
    least_body_rate_seconds: Seconds = 30.0
    """Time over which the rate of a body is averaged."""
    header_seconds: Seconds = 20.0
    """Time limit for a request's headers, and for the rest of a body that is already answered."""
    unread_seconds: Seconds = 30.0
    """A client is disconnected if it reads an answer at less than 1 KiB/s over this time."""
    otlp_endpoint: str | None = None
    """Collector of OpenTelemetry traces over HTTP, as in ``http://127.0.0.1:4318``.

    It needs the extra ``tracing``.
    """
    metrics: bool = True
    """Whether ``/metrics`` is served."""
    log_level: LogLevel = "info"
    """Lowest level of log lines that are written."""

    @field_validator("database_url", "broker_url")
    @classmethod
    def _insert_password(cls, url: str, info: ValidationInfo) -> str:
        try:
            return set_password(url, info.data.get(str(info.field_name).replace("_url", "_password")))
        except ValueError:
            raise make_fault("must be a URL") from None

    @field_validator("database_url")
    @classmethod
    def _add_driver(cls, url: str) -> str:
        return _add_driver(url)

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
        """Whether certificate and key are set."""
        return self.tls_cert is not None and self.tls_key is not None

    def environment(self) -> dict[str, str]:
        """Return the settings as environment variables for child processes; secrets stay in their files."""
        values = self.model_dump(mode="json", exclude_none=True)
        plain = {f"{_PREFIX}{name.upper()}": _format(value) for name, value in values.items() if name not in SECRETS}
        return plain | pass_on(_PREFIX, SECRETS, values)


def _format(value: object) -> str:
    if isinstance(value, list):
        return ",".join(map(str, value))
    return str(value).lower() if isinstance(value, bool) else str(value)
