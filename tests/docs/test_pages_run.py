"""Code blocks of documents run on a real server.

The outputs agree with the pages.

A block after ``<!-- not run: reason -->`` is left out. A ``text`` block after a code block is its output. Only words
are compared, because tables and noise are random.
"""

import os
import re
import shutil
import subprocess
import warnings
from collections.abc import Iterator
from contextlib import chdir, redirect_stdout
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from corevault import Client, LogisticRegression, Schema, UntrustedRelease, binary, categorical, integer, real

from app.inference.core.release import Grade
from tests.docs.blocks import ROOT, Block, read_blocks
from tests.e2e.house import SCRIPTS, House

pytestmark = [pytest.mark.process, pytest.mark.long]
LOCAL, REMOTE = "http://127.0.0.1:8000", "https://corevault.example"
SERVER = "corevaultd up"
"""The command that the fixture has run already."""


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> Iterator[House]:
    running = House(tmp_path_factory.mktemp("pages"))
    try:
        running.wait_ready()
        yield running
    finally:
        running.stop()


class Reader:
    """Somebody who follows a page: one Python prompt and one shell, in the server's folder."""

    def __init__(self, house: House, **names: Any) -> None:
        self._house, self._folder = house, house.key_file.parent
        self._names, self._replaced = names, {LOCAL: house.url, REMOTE: house.url}

    def replace(self, **texts: str) -> None:
        """Let the reader type other texts than those on the page."""
        self._replaced |= texts

    def follow(self, page: str) -> int:
        """Run the blocks of a page and compare their outputs. Returns the number of blocks."""
        output, count, before = "", 0, None
        for block in read_blocks(ROOT / page):
            if block.language == "text":
                if before is not None and output.strip() in set(Grade) - {block.code.strip()}:
                    output = self.run(before)  # one in about 170 has another grade by chance: buy again
                assert _list_words(output) == _list_words(block.code), f"{block}\n{output}"
            elif not block.reason and SERVER not in block.code:
                output, count, before = self.run(block), count + 1, block
        for client in (each for each in self._names.values() if isinstance(each, Client)):
            client.close()  # as the end of the prompt does
        return count

    def run(self, block: Block) -> str:
        """Run one block, and return its output."""
        code = block.code
        for old, new in self._replaced.items():
            code = code.replace(old, new)
        return self._run_python(code, block) if block.language == "python" else self._run_shell(code)

    def _run_python(self, code: str, block: Block) -> str:
        output = StringIO()
        with chdir(self._folder), redirect_stdout(output), warnings.catch_warnings():
            warnings.simplefilter("default")
            warnings.simplefilter("ignore", UntrustedRelease)
            exec(compile("\n" * (block.line - 1) + code, ROOT / block.page, "exec"), self._names)
        return output.getvalue()

    def _run_shell(self, code: str) -> str:
        code = code.replace(".venv/bin", str(SCRIPTS))
        code = code.replace("./vault", str(self._house.data))
        shell = shutil.which("bash")
        assert shell is not None
        done = subprocess.run(
            [shell, "-euo", "pipefail", "-c", code],
            cwd=self._folder,
            check=False,
            capture_output=True,
            text=True,
            env=os.environ,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout


def _list_words(output: str) -> list[list[str]]:
    words = (re.findall(r"[^\W\d]+", line) for line in output.splitlines())
    return [line for line in words if line]


@pytest.fixture
def reader(house: House) -> Reader:
    return Reader(house)


def _write_census(folder: Path, rows: int) -> Path:
    """Write a table with the columns of the client's guide. The outcome depends on age and hours."""
    path = folder / "adult.csv"
    numbers = ((17 + n * 7 % 74, 1 + n * 13 % 99, n % 2, n * 31 % 61) for n in range(rows))
    lines = (
        f"{age},{hours},{('Female', 'Male')[sex]},{int(age + hours > 78 + luck)}" for age, hours, sex, luck in numbers
    )
    path.write_text("\n".join(["age,hours,sex,income_gt_50k", *lines, ""]))
    return path


@pytest.fixture(scope="module")
def census(house: House) -> dict[str, str]:
    """A dataset as in the client's guide, with a release, shared with an analyst."""
    schema = Schema(
        integer("age", 17, 90, impute=38),
        real("hours", 1, 99),
        categorical("sex", ["Female", "Male"]),
        binary("income_gt_50k"),
    )
    with Client(house.url, house.key_file.read_text()) as admin:
        ana = admin.keys.create("census analyst", role="analyst")
    folder = house.key_file.parent
    owner_key = house.new_key("owner")
    with Client(house.url, owner_key) as owner:
        dataset = owner.datasets.create("census", schema, slots=5000, epsilon=4.0, shared_with=[ana])
        owner.datasets.upload(dataset, _write_census(folder, 4000))
        dataset = owner.datasets.wait_until_ready(dataset)
        model = LogisticRegression(features=["age", "hours", "sex"], target="income_gt_50k")
        job = owner.jobs.wait(owner.jobs.submit(dataset, model, size=20, epsilon=1.0))
    assert job.release_id is not None
    assert ana.key is not None
    names = {"dataset": dataset.id, "owner": owner_key, "release": job.release_id}
    return names | {"analyst": ana.key, "analyst_id": ana.id}


NEW_ROWS = {"age": [30, 60], "hours": [40, 20], "sex": ["Female", "Male"]}


def test_first_release(reader: Reader) -> None:
    assert reader.follow("docs/tutorials/first-release.md") == 2


def test_owner_and_analyst(reader: Reader, house: House) -> None:
    """The analyst continues with the table of the owner."""
    assert reader.follow("docs/tutorials/protect-a-table.md") == 6
    assert Reader(house).follow("docs/tutorials/analyse-a-table.md") == 6


def test_operator(reader: Reader) -> None:
    assert reader.follow("docs/tutorials/operate-a-server.md") == 5


def test_example_of_the_readme(house: House, reader: Reader) -> None:
    (block,) = (block for block in read_blocks(ROOT / "README.md") if block.language == "python")
    (house.key_file.parent / "clinic.csv").write_text(
        "age,sick\n" + "".join(f"{18 + n * 7 % 77},{int(n * 7 % 77 > n * 31 % 101)}\n" for n in range(4001))
    )
    Reader(house, owner_key=house.new_key("owner")).run(block)


def test_how_to_read_a_release(house: House, census: dict[str, str]) -> None:
    with Client(house.url) as client:
        reader = Reader(house, client=client, release_id=census["release"], new_rows=NEW_ROWS)
        assert reader.follow("docs/how-to/read-a-release.md") == 3


def test_how_to_use_robust_methods(reader: Reader) -> None:
    assert reader.follow("docs/how-to/use-robust-methods.md") == 1


def test_reading_a_release_needs_no_server(reader: Reader) -> None:
    assert reader.follow("docs/explanation/read-your-release.md") == 5


@pytest.mark.parametrize(
    ("number", "role"), [(0, "analyst"), (1, "analyst"), (2, "new owner"), (3, "owner"), (4, "admin")]
)
def test_examples_of_the_clients_guide(house: House, census: dict[str, str], number: int, role: str) -> None:
    blocks = [each for each in read_blocks(ROOT / "client/README.md") if each.language == "python" and not each.reason]
    assert len(blocks) == 5
    keys = census | {"new owner": house.new_key("owner"), "admin": house.key_file.read_text()}
    reader = Reader(house, new_rows=NEW_ROWS)
    reader.replace(**{"cv_…": keys[role], "ds_…": census["dataset"], "key_…": census["analyst_id"]})
    reader.run(blocks[number])
