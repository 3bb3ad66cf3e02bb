"""A copy of the tree, in which mutants are applied one at a time."""

import compileall
import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from tools.mutants.mutant import Mutant

ROOT: Final = Path(__file__).resolve().parents[2]
_COMPILED: Final = ("app", "workers", "tests", "support", "client", "migrations")


def copy_tree(target: Path) -> None:
    """Copy all files that git tracks from the working tree, and compile their modules."""
    listed = subprocess.run(("git", "ls-files", "-z"), cwd=ROOT, check=True, capture_output=True).stdout.decode()
    for name in filter(None, listed.split("\0")):
        if (ROOT / name).is_file():
            (target / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, target / name)
    for folder in _COMPILED:
        compileall.compile_dir(target / folder, quiet=2)


@contextmanager
def change(tree: Path, mutant: Mutant) -> Iterator[None]:
    """Apply a mutant to the copy, and restore the file at the end.

    The compiled module is of the unchanged file. Python compares only the size and the time of modification, in whole
    seconds, so the changed file gets another time.
    """
    file = tree / mutant.file
    source, times = file.read_text(), file.stat()
    file.write_text(mutant.apply(source))
    os.utime(file, ns=(times.st_atime_ns, times.st_mtime_ns + 10 * 10**9))
    try:
        yield
    finally:
        file.write_text(source)
        os.utime(file, ns=(times.st_atime_ns, times.st_mtime_ns))
