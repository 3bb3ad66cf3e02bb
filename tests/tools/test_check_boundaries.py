"""The boundary check finds planted breaches, and finds no breach in the code."""

from pathlib import Path

import pytest

from tools import check_boundaries
from tools.check_boundaries import find_breaches, main

PLANTED = {
    "a second commit": ("app/jobs/service.py", "session.commit()"),
    "rows read past the enclave": ("workers/run_task.py", "path.read_bytes()"),
    "a file opened in a feature": ("app/jobs/service.py", "open('table.csv')"),
    "SQL on the ledger": ("app/jobs/service.py", "text('UPDATE ledger_entries SET sequence = 1')"),
    "global randomness": ("app/inference/methods/uniform.py", "np.random.default_rng(7)"),
    "another noise source": ("workers/computation.py", "def perturb(self, sums, scale): return sums"),
    "noise under a condition": (
        "workers/computation.py",
        "ClippedGaussianOracle(rows, noise=DiscreteGaussian() if settings.private else Nothing())",
    ),
    "noise by another name": ("workers/computation.py", "ClippedGaussianOracle(rows, noise=noise)"),
    "an oracle without noise": ("workers/computation.py", "ClippedGaussianOracle(rows)"),
    "a seed": ("app/inference/methods/uniform.py", "def init(seed: int) -> None: ..."),
    "an argument that holds a seed": ("app/inference/private_zone/rng.py", "def make(seed_bytes: bytes) -> None: ..."),
    "a keyword of a seed": ("app/inference/post/laplace.py", "generator(seed=7)"),
    "a name of a seed": ("app/inference/post/laplace.py", "SEED = 7"),
    "an attribute of a seed": ("app/inference/post/laplace.py", "state.next_seed"),
    "a function that makes a seed": ("app/inference/private_zone/rng.py", "def draw_seed(): ..."),
    "an import of a seed": ("app/inference/private_zone/rng.py", "from somewhere import value as seed"),
    "a default generator in the core": ("app/inference/post/laplace.py", "from numpy.random import default_rng"),
    "a default generator by its name": ("app/inference/post/laplace.py", "getattr(random, 'default_rng')"),
    "the secrets module in the core": ("app/inference/private_zone/mechanisms.py", "import secrets"),
    "a stream cipher in the core": ("app/inference/private_zone/sampling.py", "from randomgen import ChaCha"),
    "a noise library outside the mechanisms": ("app/inference/private_zone/oracle.py", "import opendp.prelude"),
    "a file that is too long": ("app/jobs/service.py", "x = 1\n" * 401),
    "a function that is too long": ("app/jobs/service.py", "def f():\n" + "    x = 1\n" * 60),
}


@pytest.mark.parametrize("breach", PLANTED)
def test_planted_breach_is_found(breach: str) -> None:
    """W2, W7."""
    path, source = PLANTED[breach]
    assert {line for line, _ in find_breaches(path, source)} == {1}


@pytest.mark.parametrize(
    ("path", "source"),
    [
        ("app/db/session.py", "session.commit()"),
        ("app/db/group_commit.py", "session.commit()"),
        ("workers/enclave/sources.py", "open('table.csv')"),
        ("app/ledger/entries/writer.py", "text('INSERT INTO ledger_entries VALUES (1)')"),
        ("app/inference/private_zone/rng.py", "np.random.Generator(np.random.PCG64(1))"),
        ("app/inference/private_zone/rng.py", "import secrets\nfrom randomgen import ChaCha"),
        ("app/inference/private_zone/mechanisms.py", "import opendp.prelude"),
        ("app/inference/private_zone/sampling.py", "text = 'a ChaCha20 stream'"),
        ("app/vault/signing.py", "SEED = load_seed()"),
        ("app/jobs/service.py", "self._ledger.open(tx, job_id)"),
        ("app/inference/private_zone/mechanisms.py", "def perturb(self, sums, scale): ..."),
        ("workers/computation.py", "ClippedGaussianOracle(rows, noise=DiscreteGaussian())"),
    ],
)
def test_permitted_code_is_no_breach(path: str, source: str) -> None:
    assert list(find_breaches(path, source)) == []


def test_breach_in_a_file_of_the_tree_fails_the_check(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """W7: this holds in every folder of the core."""
    file = tmp_path / "app" / "inference" / "methods" / "new.py"
    file.parent.mkdir(parents=True)
    file.write_text("\nSEED = 7\n")
    monkeypatch.setattr(check_boundaries, "ROOT", tmp_path)
    assert main() == 1
    assert capsys.readouterr().out == "app/inference/methods/new.py:2: no code in the core may use a seed\n"


def test_files_with_special_permissions_exist() -> None:
    named = {*check_boundaries.COMMITS, *check_boundaries.RANDOMNESS, *check_boundaries.SOURCES_OF_RANDOMNESS}
    assert all((check_boundaries.ROOT / path).is_file() for path in named)
