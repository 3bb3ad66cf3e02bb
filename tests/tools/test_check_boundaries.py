"""The boundary check finds what it is there for, and the code as it is has none of it."""

import pytest

from tools.check_boundaries import breaches, main

PLANTED = {
    "a second commit": ("app/jobs/service.py", "session.commit()"),
    "rows read past the enclave": ("workers/runner.py", "path.read_bytes()"),
    "a file opened in a feature": ("app/jobs/service.py", "open('table.csv')"),
    "SQL on the ledger": ("app/jobs/service.py", "text('UPDATE ledger_entries SET sequence = 1')"),
    "global randomness": ("app/inference/methods/uniform.py", "np.random.default_rng(7)"),
    "a seed": ("app/inference/methods/uniform.py", "def init(seed: int) -> None: ..."),
    "a file that nobody reads in one sitting": ("app/jobs/service.py", "x = 1\n" * 401),
    "a function that does too much": ("app/jobs/service.py", "def f():\n" + "    x = 1\n" * 60),
}


@pytest.mark.parametrize("what", PLANTED)
def test_a_planted_breach_is_found(what: str) -> None:
    """W2, W7: an unchecked rule decays."""
    path, source = PLANTED[what]
    assert [line for line, _ in breaches(path, source)] == [1]


@pytest.mark.parametrize(
    ("path", "source"),
    [
        ("app/db/session.py", "session.commit()"),
        ("app/db/together.py", "session.commit()"),
        ("workers/enclave/sources.py", "open('table.csv')"),
        ("app/ledger/rows.py", "text('INSERT INTO ledger_entries VALUES (1)')"),
        ("app/inference/rng.py", "np.random.Generator(np.random.PCG64(1))"),
        ("app/jobs/service.py", "self._ledger.open(tx, job_id)"),
    ],
)
def test_what_belongs_where_it_stands_is_no_breach(path: str, source: str) -> None:
    assert list(breaches(path, source)) == []


def test_the_code_has_no_breach(capsys: pytest.CaptureFixture[str]) -> None:
    """W2: one package opens rows, one writes the ledger, one module makes randomness."""
    assert main() == 0, capsys.readouterr().out
