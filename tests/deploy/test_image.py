"""The image: its sources and the files that are left out. No daemon is needed."""

import re
import shlex
from importlib.metadata import requires

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.deploy.test_compose import COMPOSE, ROOT

INSTRUCTIONS = (ROOT / "Dockerfile").read_text().replace("\\\n", " ").splitlines()
IGNORED = [line for line in (ROOT / ".dockerignore").read_text().splitlines() if line and not line.startswith("#")]
STAGE = re.compile(r"^FROM (\S+)(?: AS (\S+))?$")


def stages() -> dict[str, list[str]]:
    """Return name of each stage ("" for the image itself) -> its instructions."""
    found: dict[str, list[str]] = {}
    for line in INSTRUCTIONS:
        if begun := STAGE.match(line):
            current = found.setdefault(begun[2] or "", [])
        elif found:
            current.append(line)
    return found


def copied() -> set[str]:
    """Return the files that are copied from the build context."""
    lines = [line.split()[1:] for line in INSTRUCTIONS if line.startswith("COPY ") and "--from=" not in line]
    return {source for *sources, _ in lines for source in sources}


def closure(*names: str) -> set[str]:
    """Return the distributions with their dependencies; ``name[extra]`` adds the extra's."""
    known: set[str] = set()
    waiting = [Requirement(name) for name in names]
    while waiting:
        wanted = waiting.pop()
        extras = {"", *wanted.extras}
        for each in map(Requirement, requires(wanted.name) or ()):
            applies = each.marker is None or any(each.marker.evaluate({"extra": extra}) for extra in extras)
            if applies and canonicalize_name(each.name) not in known:
                known.add(canonicalize_name(each.name))
                waiting.append(each)
    return known | {canonicalize_name(Requirement(name).name) for name in names}


def test_only_copied_files_are_sent_to_the_builder() -> None:
    """W1: passwords, keys, data folders and the history are not sent."""
    assert IGNORED[0] == "*"
    assert {line.removeprefix("!") for line in IGNORED if line.startswith("!")} == copied()
    assert IGNORED[-1] == "**/__pycache__"


def test_passwords_are_never_committed() -> None:
    ignored = (ROOT / ".gitignore").read_text().splitlines()
    assert {f"/{secret['file'].split('/')[1]}/" for secret in COMPOSE["secrets"].values()} <= set(ignored)


def test_only_build_packages_are_left_out_of_the_image() -> None:
    (line,) = [line for line in stages()["packages"] if "uninstall" in line]
    words = shlex.split(line)
    removed = set(words[words.index("--yes") + 1 :])
    assert removed == closure("hatchling") - closure("corevault-server[oidc,tracing]")
    (last,) = [line for line in stages()[""] if line.startswith("RUN ")]
    assert last.endswith("setuptools wheel pip")
    assert "--without-pip" in " ".join(stages()["locked"])


def test_code_is_copied_after_its_packages() -> None:
    """A change of the code does not rebuild the layers of packages."""
    image = [line.split()[1] for line in stages()[""] if line.startswith("COPY ")]
    assert image == ["--from=packages", "--from=guide", "--from=made"]
    for stage in ("locked", "packages"):
        assert [line for line in stages()[stage] if line.startswith("COPY ")] == (
            ["COPY requirements-service.lock ./"] if stage == "locked" else []
        )
    assert [STAGE.match(line)[1] for line in INSTRUCTIONS if line.startswith("FROM ")] == [  # type: ignore[index]
        "${PYTHON_IMAGE}",
        "locked",
        "locked",
        "${PYTHON_IMAGE}",
        "${PYTHON_IMAGE}",
    ]


def test_the_image_has_the_documentation_site_and_not_its_packages() -> None:
    guide = stages()["guide"]
    (built,) = [line for line in guide if "tools.guide" in line]
    assert all(
        part in built for part in ("tools.guide docs/_build/source", "sphinx -q -n -W", "tools.guide.check /guide")
    )
    assert "--require-hashes" in " ".join(guide)
    (copied_site,) = [line for line in stages()[""] if line.startswith("COPY --from=guide")]
    place = copied_site.split()[-1]
    assert copied_site.split()[2:] == ["/guide", place]
    assert any(f"COREVAULT_GUIDE_DIR={place}" in line for line in stages()[""])


def test_the_image_runs_as_an_unprivileged_user() -> None:
    (user,) = [line.split()[1] for line in stages()[""] if line.startswith("USER ")]
    assert user == "10001:10000"
