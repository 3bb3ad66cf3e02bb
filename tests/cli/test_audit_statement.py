"""Signed statements of audits: made by the server, verified by the client without it (W12)."""

import base64
import copy
import hashlib
import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from corevault import VerificationError
from corevault.audit_statement import bound_by_guesses, bound_epsilon, bound_separation, compute_epsilon, verify_audit
from corevault.cli.main import main as run_client
from typer.testing import CliRunner

from app.cli import auditing, installed_code
from app.cli.commands import cli
from app.config import Settings
from app.inference.audit import report
from app.inference.audit.mechanism import CONFIDENCE, DELTA
from app.privacy.audit import bounds, guesses
from app.privacy.audit.laws import AnswerLaw
from app.vault.keys import RELEASE, create_keys, read_secret_key
from app.vault.signing import Signer

RUNNER = CliRunner()
FEW = report.Size(2, 10_000, 10_000, 2, 2, 2)
SMALL = ("dp-accounting", "randomgen")
"""Libraries whose digests take little time."""
Change = Callable[[dict[str, Any]], object]


@pytest.fixture(scope="module")
def settings(tmp_path_factory: pytest.TempPathFactory) -> Settings:
    folder = tmp_path_factory.mktemp("installation")
    create_keys(folder / "keys")
    return Settings(data_dir=folder)


@pytest.fixture(scope="module")
def document(settings: Settings) -> dict[str, Any]:
    """A statement about real attacks with few answers, and about an imagined run."""
    by_guesses = guesses.bound_epsilon_by_guesses(1000, 150, 120, DELTA, CONFIDENCE)
    found: dict[str, list[dict[str, Any]]] = {
        "contributions": [{"query": "mean_sum", "one_row": 0.9998, "three_rows": 0.9998, "holds": True}],
        "canaries": [report.audit_many_answers(AnswerLaw(1.0, rate), FEW) for rate in (1.0, 0.3)],
        "one-run": [
            {"canaries": 1000, "guesses": 150, "correct": 120, "by_guesses": by_guesses, "epsilon": 9.0, "holds": True}
        ],
        "guesses": [_record_guesses([70, 65, 71])],
        "releases": [_record_release([60, 100, 40, 100])],
    }
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(installed_code, "LIBRARIES", SMALL)
        signed = auditing.sign_statement(settings, FEW, found, "0123abc")
    copied: dict[str, Any] = json.loads(json.dumps(signed))
    return copied


@pytest.fixture(scope="module")
def key(settings: Settings) -> str:
    return (settings.keys_dir / "release.pub").read_text().strip()


def _record_release(counts: list[int]) -> dict[str, Any]:
    """Make the record of a release with mu 1, as the report makes it."""
    claim = AnswerLaw(1.0)
    seen = bounds.Counts(*counts)
    return {
        "mu": 1.0,
        "epsilon": claim.compute_epsilon(DELTA),
        "by_shape": bounds.bound_epsilon_by_shape(seen, claim, DELTA, CONFIDENCE),
        "counts": counts,
        "holds": not bounds.is_refuted(seen, claim, 1 - report.CHANCE),
    }


def _record_guesses(correct: list[int]) -> dict[str, Any]:
    """Make the record of runs with a hundred canaries each and mu 1."""
    claim = AnswerLaw(1.0)
    evidence = float(guesses.weigh_shares(np.array(correct) / 100, claim).max(initial=0.0))
    return {
        "noise": 4.0,
        "queries": 16,
        "canaries": 100,
        "correct": correct,
        "epsilon": claim.compute_epsilon(DELTA),
        "most_accuracy": guesses.compute_accuracy(claim),
        "privacy_evidence": evidence,
        "holds": evidence < -math.log(report.CHANCE),
    }


def _sign(settings: Settings, statement: dict[str, Any]) -> dict[str, Any]:
    return Signer(read_secret_key(settings.keys_dir / RELEASE)).sign(statement)


def test_a_true_statement_is_verified_and_its_bounds_computed_again(document: dict[str, Any], key: str) -> None:
    found = verify_audit(document, [key])
    assert found.holds
    assert found.checked == 3 * 2 + 1 + 3
    code = found.statement["code"]
    assert (code["commit"], code["version"]) == ("0123abc", "0.1.0")
    assert set(code["sources"]) == {"app", "workers", "migrations"}
    assert set(code["libraries"]) == set(SMALL)
    assert {"numpy", "scipy", "dp-accounting", "opendp"} <= set(installed_code.LIBRARIES)


CHANGES: dict[str, Change] = {
    "a count": lambda statement: statement["records"]["canaries"][0]["counts"].__setitem__(0, 1),
    "a digest": lambda statement: statement["code"]["libraries"]["dp-accounting"].update(record="sha256:00"),
    "a source": lambda statement: statement["code"]["sources"].update(app="sha256:00"),
    "a bound": lambda statement: statement["records"]["canaries"][0].update(by_shape=0.1),
    "the failures": lambda statement: statement.update(failures=7),
    "a left out record": lambda statement: statement["records"]["canaries"].pop(),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_a_changed_statement_is_refused(document: dict[str, Any], key: str, change: Change) -> None:
    """W12: the signature covers counts, digests and failures."""
    changed = copy.deepcopy(document)
    change(changed["statement"])
    with pytest.raises(VerificationError, match="signature does not belong"):
        verify_audit(changed, [key])


def test_another_key_is_refused(document: dict[str, Any], settings: Settings) -> None:
    other = Signer(b"o" * 32)
    with pytest.raises(VerificationError, match="not among the trusted keys"):
        verify_audit(document, [other.public_key])
    with pytest.raises(VerificationError, match="not among the trusted keys"):
        verify_audit(other.sign(document["statement"]), [(settings.keys_dir / "release.pub").read_text().strip()])


@pytest.mark.parametrize("name", ["a count", "a bound"])
def test_bounds_that_do_not_follow_from_counts_are_refused(
    document: dict[str, Any], settings: Settings, key: str, name: str
) -> None:
    """W12: also if the operator signed them."""
    statement = copy.deepcopy(document["statement"])
    CHANGES[name](statement)
    with pytest.raises(VerificationError, match="does not follow from its counts"):
        verify_audit(_sign(settings, statement), [key])


def test_hidden_failures_are_refused(document: dict[str, Any], settings: Settings, key: str) -> None:
    statement = copy.deepcopy(document["statement"])
    statement["records"]["contributions"][0].update(one_row=1.01, holds=False)
    with pytest.raises(VerificationError, match="number of failures"):
        verify_audit(_sign(settings, statement), [key])
    statement["failures"] = 1
    assert not verify_audit(_sign(settings, statement), [key]).holds


def _claim(section: str, record: dict[str, Any]) -> Change:
    """Replace the records of a section by one that is stated to hold."""
    return lambda statement: statement["records"].update({section: [record | {"holds": True}]})


GUESSES = {"canaries": 150, "guesses": 150, "correct": 150}
REFUTED: dict[str, Change] = {
    "counts": _claim("canaries", _record_release([9000, 10_000, 10, 10_000]) | {"noise": 1.0, "rate": 1.0}),
    "a run": _claim(
        "transcripts",
        {
            "counts": [9000, 10_000, 10, 10_000],
            "mu": 1.0,
            "by_threshold": bounds.bound_separation(bounds.Counts(9000, 10_000, 10, 10_000), CONFIDENCE),
            "epsilon": AnswerLaw(1.0).compute_epsilon(DELTA),
        },
    ),
    "a release": _claim("releases", _record_release([9000, 10_000, 10, 10_000])),
    "guesses": _claim(
        "one-run",
        GUESSES | {"epsilon": 0.1, "by_guesses": guesses.bound_epsilon_by_guesses(150, 150, 150, DELTA, CONFIDENCE)},
    ),
    "guesses in several runs": _claim("guesses", _record_guesses([90] * 60)),
    "a contribution": _claim("contributions", {"query": "mean_sum", "one_row": 1.01, "three_rows": 0.9}),
    "a text": lambda statement: statement["records"]["canaries"][0].update(holds="no"),
}


@pytest.mark.parametrize("change", REFUTED.values(), ids=REFUTED)
def test_a_refuted_claim_that_is_stated_to_hold_is_refused(
    document: dict[str, Any], settings: Settings, key: str, change: Change
) -> None:
    """W12: ``holds`` must follow from the numbers, too; otherwise the statement has no failure."""
    statement = copy.deepcopy(document["statement"])
    change(statement)
    statement["plan"]["sections"] = list(statement["records"])
    with pytest.raises(VerificationError, match="its numbers refute the claim"):
        verify_audit(_sign(settings, statement), [key])


MISSING: dict[str, Change] = {
    "a section": lambda statement: statement["records"].pop("releases"),
    "all": lambda statement: statement.update(records={}),
    "counts": lambda statement: statement["records"]["canaries"][0].pop("counts"),
    "guesses": lambda statement: statement["records"]["guesses"][0].pop("correct"),
}


@pytest.mark.parametrize("change", MISSING.values(), ids=MISSING)
def test_missing_records_and_counts_are_refused(
    document: dict[str, Any], settings: Settings, key: str, change: Change
) -> None:
    """W12: nothing unfavourable may be left out of the audit that was planned."""
    statement = copy.deepcopy(document["statement"])
    change(statement)
    with pytest.raises(VerificationError, match=r"not all records|malformed"):
        verify_audit(_sign(settings, statement), [key])


def test_altered_libraries_do_not_hold(document: dict[str, Any], settings: Settings, key: str) -> None:
    statement = copy.deepcopy(document["statement"])
    statement["code"]["libraries"]["randomgen"]["altered"] = 1
    found = verify_audit(_sign(settings, statement), [key])
    assert (found.holds, found.altered) == (False, ("randomgen",))


@pytest.mark.parametrize(
    "malformed",
    [{}, {"statement": {}, "signature": 1, "key_id": ""}, {"statement": [], "signature": "", "key_id": ""}, []],
)
def test_other_documents_are_refused(key: str, malformed: Any) -> None:
    with pytest.raises(VerificationError):
        verify_audit(malformed, [key])


@pytest.mark.parametrize("statement", [{"kind": "release"}, {"kind": "privacy-audit"}])
def test_other_signed_statements_are_refused(settings: Settings, key: str, statement: dict[str, Any]) -> None:
    with pytest.raises(VerificationError, match=r"no statement of a privacy audit|malformed"):
        verify_audit(_sign(settings, statement), [key])


@pytest.mark.parametrize(("noise", "rate"), [(1.0, 1.0), (0.3, 1.0), (5.0, 1.0), (1.0, 0.02), (0.05, 0.02), (2.0, 0.3)])
def test_the_clients_bounds_equal_those_of_the_server(noise: float, rate: float) -> None:
    """A second derivation, without the server's code."""
    law, rng = AnswerLaw(noise, rate), np.random.default_rng(1)
    for delta in (1e-6, 1e-3):
        assert compute_epsilon(noise, rate, delta) == pytest.approx(law.compute_epsilon(delta), rel=1e-7, abs=1e-9)
    for _ in range(3):
        present, absent = (int(each) for each in rng.integers(1, 5000, 2))
        numbers = int(rng.integers(0, present + 1)), present, int(rng.integers(0, absent + 1)), absent
        counts = bounds.Counts(*numbers)
        shown = bounds.bound_epsilon_by_shape(counts, law, 1e-6, 0.999)
        assert bound_epsilon(numbers, noise, rate, 1e-6, 0.999) == pytest.approx(shown, rel=1e-6, abs=1e-6)
        assert bound_separation(numbers, 0.999) == pytest.approx(bounds.bound_separation(counts, 0.999), rel=1e-9)
        numbers_of_run = (1000, 150, int(rng.integers(75, 151)))
        expected = guesses.bound_epsilon_by_guesses(*numbers_of_run, 1e-6, 0.999)
        assert bound_by_guesses(*numbers_of_run, 1e-6, 0.999) == pytest.approx(expected, rel=1e-9, abs=1e-9)


def _audit(settings: Settings, file: Path, *, holds: bool = True) -> Any:
    arguments = ["audit", "--section", "filter", "--statement", str(file), "--data-dir", str(settings.data_dir)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(installed_code, "LIBRARIES", SMALL)
        patch.setitem(report.SECTIONS, "filter", lambda _: iter([{"levels": 2, "holds": holds}]))
        return RUNNER.invoke(cli, arguments)


def test_the_commands_write_and_verify_a_statement(
    settings: Settings, key: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "audit.json"
    assert _audit(settings, file).exit_code == 0
    assert run_client(["verify-audit", str(file), "--pin", key]) == 0
    assert "Verified" in capsys.readouterr().err
    other = Signer(b"o" * 32).public_key
    assert run_client(["verify-audit", str(file), "--pin", other]) == 1
    refused = _audit(settings, file)
    assert refused.exit_code == 1
    assert "exists already" in refused.output


def test_failures_are_written_too(settings: Settings, key: str, tmp_path: Path) -> None:
    """W12: a statement is also written if an attack exceeds the guarantee."""
    file = tmp_path / "audit.json"
    assert _audit(settings, file, holds=False).exit_code == 1
    assert verify_audit(json.loads(file.read_text()), [key]).failures == 1
    assert run_client(["verify-audit", str(file), "--pin", key]) == 1


def test_a_statement_needs_an_installation(tmp_path: Path) -> None:
    arguments = ["audit", "--section", "filter", "--statement", str(tmp_path / "a.json"), "--data-dir", str(tmp_path)]
    found = RUNNER.invoke(cli, arguments)
    assert found.exit_code == 1
    assert "there are no keys" in found.output


def test_digests_follow_the_sources(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = tmp_path / "audited_sample"
    (package / "inner").mkdir(parents=True)
    (package / "__init__.py").write_text("")
    (package / "inner" / "noise.py").write_text("SCALE = 1.0\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    before = installed_code.digest_sources("audited_sample")
    assert installed_code.digest_sources("audited_sample") == before
    (package / "inner" / "noise.py").write_text("SCALE = 0.98\n")
    assert installed_code.digest_sources("audited_sample") != before


def test_an_altered_file_of_a_library_is_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """W12: records of wheels have a digest of each file."""
    info = tmp_path / "sample-1.0.dist-info"
    info.mkdir()
    (tmp_path / "sample.py").write_text("x = 1\n")
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: sample\nVersion: 1.0\n")
    digest = base64.urlsafe_b64encode(hashlib.sha256(b"x = 1\n").digest()).rstrip(b"=").decode()
    (info / "RECORD").write_text(f"sample.py,sha256={digest},6\nsample-1.0.dist-info/RECORD,,\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    found = installed_code.digest_distribution("sample")
    assert (found["version"], found["altered"]) == ("1.0", 0)
    (tmp_path / "sample.py").write_text("x = 2\n")
    assert installed_code.digest_distribution("sample") == found | {"altered": 1}
    (tmp_path / "sample.py").unlink()
    assert installed_code.digest_distribution("sample")["altered"] == 1


def test_a_missing_library_is_stated() -> None:
    assert installed_code.digest_distribution("corevault-nothing") == {"version": None, "record": None, "altered": 0}
