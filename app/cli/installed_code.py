"""Digests of the installed code, for statements of audits."""

import base64
import hashlib
import json
from importlib.metadata import PackageNotFoundError, distribution, version
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

OWN: Final = ("app", "workers", "migrations")
LIBRARIES: Final = ("numpy", "scipy", "dp-accounting", "opendp", "randomgen")
"""Distributions (packages of PyPI) that compute answers, noise, subsamples or prices."""
_SERVER: Final = "corevault-server"


def describe_code(commit: str | None) -> dict[str, Any]:
    """Describe the installed code: version, commit, and digests of sources and libraries.

    The argument ``commit`` is used if the installation does not record its commit.
    """
    return {
        "version": version(_SERVER),
        "commit": _read_commit() or commit,
        "sources": {name: digest_sources(name) for name in OWN},
        "libraries": {name: digest_distribution(name) for name in LIBRARIES},
    }


def digest_sources(package: str) -> str:
    """Compute one digest of the sources of a package, by their paths and contents.

    It does not depend on how the package is installed.
    """
    spec = find_spec(package)
    assert spec is not None
    assert spec.submodule_search_locations is not None
    root = Path(next(iter(spec.submodule_search_locations)))
    lines = [f"{path.relative_to(root).as_posix()} {_digest(path)}" for path in sorted(root.rglob("*.py"))]
    return _name(hashlib.sha256("\n".join(lines).encode()))


def digest_distribution(name: str) -> dict[str, Any]:
    """Compute a digest of a distribution's ``RECORD``, and count altered files.

    ``RECORD`` is the list of installed files with their digests. An altered file is absent, or its digest differs.
    Compiled bytecode has no digest there, and is left out. Scripts are left out too, because they are outside of the
    package.
    """
    try:
        installed = distribution(name)
    except PackageNotFoundError:
        return {"version": None, "record": None, "altered": 0}
    recorded = {
        str(file): (file.hash.value, Path(str(file.locate())))
        for file in installed.files or ()
        if file.hash is not None and file.hash.mode == "sha256" and not str(file).startswith("..")
    }
    lines = [f"{path} {value}" for path, (value, _) in sorted(recorded.items())]
    altered = sum(_is_altered(value, path) for value, path in recorded.values())
    return {
        "version": installed.version,
        "record": _name(hashlib.sha256("\n".join(lines).encode())),
        "altered": altered,
    }


def _is_altered(value: str, path: Path) -> bool:
    try:
        digest = hashlib.sha256(path.read_bytes()).digest()
    except OSError:
        return True
    return base64.urlsafe_b64encode(digest).rstrip(b"=").decode() != value


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _name(digest: Any) -> str:
    return f"sha256:{digest.hexdigest()}"


def _read_commit() -> str | None:
    """Read the commit from the record of an installation from a repository (PEP 610)."""
    stored = distribution(_SERVER).read_text("direct_url.json")
    commit = json.loads(stored).get("vcs_info", {}).get("commit_id") if stored else None
    return commit if isinstance(commit, str) else None
