"""The first minutes of an analyst: ``make newcomer``.

Builds the client's wheel. Installs it in an empty environment, and measures the installation and the imports. Then
installs it with the extra ``arviz`` in another one, and starts a server with a table. There it runs the ten lines of
the client's guide, which must end with a picture.
"""

import argparse
import csv
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final, NamedTuple

import numpy as np
from corevault import Client, Schema, binary, categorical, integer

from benchmarks.environment import PAGES, ROOT, describe, describe_environment
from demo.server import Server, run_server

INSTALL_SECONDS, IMPORT_SECONDS = 15.0, 0.3
"""The goals, in seconds of processor time, which other load of the machine does not change."""
HEADING: Final = "## In ten lines"
INSTALL, IMPORT = "install the wheel", "import corevault"
IMPORTS: Final = {
    IMPORT: "import corevault",
    "the first client": "import corevault; corevault.Client('http://vault.test')",
    "the first posterior": "import corevault; corevault.example().posterior()",
}
_PAGE: Final = """# The first minutes of an analyst

Written by `make newcomer`. The client's wheel is installed in empty environments, from a package index or its mirror.
The [ten lines of the client's guide](../../client/README.md#in-ten-lines) are {lines} lines of code. They run against
a new server, and end with a picture. Goals, in seconds of processor time: {install:g} for the installation without
extras, {imports:g} for `import corevault`. {verdict}

{measured}

| step | seconds | processor seconds |
| --- | ---: | ---: |
{costs}

Imports and first uses are medians of new processes, without the start of Python. `import corevault` imports almost
nothing, because each name is imported at its first use. The packages whose modules take the most time to import:

{largest}
"""
_REPEATS: Final = 7
_SHOWN: Final = 5
_ROWS: Final = 4000
_SCHEMA: Final = Schema(integer("age", 18, 95), categorical("sex", ["female", "male"]), binary("sick"))


class Cost(NamedTuple):
    """Time of a command: elapsed, and of the processor."""

    seconds: float
    cpu_seconds: float


def run(command: Sequence[str | Path], **options: object) -> Cost:
    """Runs a command and measures it. Raises ``CalledProcessError`` if it fails."""
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    subprocess.run([str(part) for part in command], check=True, **options)  # type: ignore[call-overload]
    seconds, after = time.perf_counter() - start, resource.getrusage(resource.RUSAGE_CHILDREN)
    return Cost(seconds, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)


def make_environment(folder: Path, requirement: str) -> tuple[Path, Cost]:
    """The Python of a new environment, and the cost of installing ``requirement`` in it."""
    run([sys.executable, "-m", "venv", folder])
    python = folder / "bin" / "python"
    return python, run([python, "-m", "pip", "install", "-q", "--disable-pip-version-check", requirement])


def measure_import(python: Path, code: str, folder: Path) -> Cost:
    """The median cost of ``code`` in a new process, without the start of Python."""
    costs = {text: [run([python, "-c", text], cwd=folder) for _ in range(_REPEATS)] for text in ("pass", code)}
    medians = {text: [statistics.median(column) for column in zip(*each, strict=True)] for text, each in costs.items()}
    return Cost(*(full - bare for full, bare in zip(medians[code], medians["pass"], strict=True)))


def find_largest_imports(python: Path, code: str, folder: Path) -> list[tuple[str, float]]:
    """The slowest packages to import, with their shares in per cent."""
    command = [str(python), "-X", "importtime", "-c", code]
    text = subprocess.run(command, cwd=folder, check=True, capture_output=True, text=True).stderr
    own: dict[str, float] = {}
    for line in text.splitlines()[1:]:
        microseconds, _, name = line.removeprefix("import time:").split("|")
        package = name.strip().partition(".")[0]
        own[package] = own.get(package, 0.0) + float(microseconds)
    total = sum(own.values())
    largest = sorted(own.items(), key=lambda entry: -entry[1])[:_SHOWN]
    return [(package, 100.0 * microseconds / total) for package, microseconds in largest]


def read_ten_lines() -> str:
    """The code of the client's guide."""
    text = (ROOT / "client" / "README.md").read_text()
    return text.partition(HEADING)[2].partition("```python\n")[2].partition("```")[0]


def count_lines(code: str) -> int:
    """Lines that are not empty."""
    return sum(bool(line.strip()) for line in code.splitlines())


def prepare_table(server: Server) -> str:
    """Declares and uploads the table of the ten lines. The API key of an analyst who may use it."""
    rng = np.random.default_rng(3)
    age, sex = rng.integers(18, 96, _ROWS), rng.integers(0, 2, _ROWS)
    sick = rng.random(_ROWS) < 1.0 / (1.0 + np.exp(-(age - 56) / 15 - 0.5 * (sex - 0.5)))
    table = {"age": age, "sex": np.array(["female", "male"])[sex], "sick": sick.astype(int)}
    with Client(server.base_url, server.admin_key) as admin:
        owner, analyst = (admin.keys.create(role, role) for role in ("owner", "analyst"))
    with Client(server.base_url, owner.key) as client:
        dataset = client.datasets.create("clinic", _SCHEMA, slots=5000, epsilon=2.0, shared_with=[analyst])
        client.datasets.upload(dataset, table)
        client.datasets.wait_until_ready(dataset)
    assert analyst.key is not None, "a new key has a secret"
    return analyst.key


def run_ten_lines(python: Path, folder: Path) -> Cost:
    """Runs the code against a new server. Raises ``RuntimeError`` if there is no picture in the end."""
    with run_server(folder) as server:
        key = prepare_table(server)
        plain = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
        settings = {"COREVAULT_URL": server.base_url, "COREVAULT_API_KEY": key, "MPLBACKEND": "Agg"}
        cost = run([python, "-c", read_ten_lines()], cwd=folder, env=plain | settings)
    picture = folder / "forest.png"
    if not picture.exists() or not picture.read_bytes().startswith(b"\x89PNG"):
        raise RuntimeError("The ten lines did not make a picture.")
    return cost


def find_late(costs: Mapping[str, Cost]) -> list[str]:
    """The steps that miss their goals."""
    goals = {INSTALL: INSTALL_SECONDS, IMPORT: IMPORT_SECONDS}
    return [name for name, goal in goals.items() if costs[name].cpu_seconds > goal]


def render_page(costs: Mapping[str, Cost], largest: Mapping[str, list[tuple[str, float]]], lines: int) -> str:
    """The page."""
    late = find_late(costs)
    return _PAGE.format(
        lines=lines,
        install=INSTALL_SECONDS,
        imports=IMPORT_SECONDS,
        verdict=f"Missed: {', '.join(late)}." if late else "Both goals are met.",
        measured=describe(describe_environment()),
        costs="\n".join(f"| {name} | {cost.seconds:.2f} | {cost.cpu_seconds:.2f} |" for name, cost in costs.items()),
        largest="\n".join(
            f"- {name}: {', '.join(f'{package} {share:.0f} %' for package, share in each)}"
            for name, each in largest.items()
        ),
    )


def main() -> int:
    """Measures everything and writes the page; returns 1 if a goal is missed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=PAGES / "newcomer.csv")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        root = Path(temporary)
        run([sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "-w", root, ROOT / "client"])
        (wheel,) = root.glob("*.whl")
        python, installed = make_environment(root / "plain", str(wheel))
        costs = {INSTALL: installed}
        costs |= {name: measure_import(python, code, root) for name, code in IMPORTS.items()}
        largest = {name: find_largest_imports(python, code, root) for name, code in IMPORTS.items()}
        python, costs["install it with the extra arviz"] = make_environment(root / "arviz", f"{wheel}[arviz]")
        (root / "server").mkdir()
        costs["run the ten lines"] = run_ten_lines(python, root / "server")
    with options.out.open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["step", *Cost._fields])
        writer.writerows([name, *cost] for name, cost in costs.items())
    options.out.with_suffix(".md").write_text(render_page(costs, largest, count_lines(read_ten_lines())))
    return int(bool(find_late(costs)))


if __name__ == "__main__":
    sys.exit(main())
