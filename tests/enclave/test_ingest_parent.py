"""Ingestion through the real child process, with no plaintext in the store."""

import hashlib
import hmac
import io
import struct
import sys
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from app.errors import DependencyUnavailable
from app.inference.core.facts import Column
from app.vault.envelope import make_content_context, make_declared_context, seal_new_dataset_key, unwrap_key, wrap_key
from app.vault.errors import ObjectMissing, VaultError
from support.vault import COLUMNS, FACTS, NAMES, PARQUET, Vault, make_csv_file, make_vault, parse_csv
from workers.enclave import Failed, Ingested, Limits, Rejected

pytestmark = pytest.mark.parsing

ROWS = [["40", "20.5", "Male", "A", "1", "0"], ["x", "nan", "Male"], ["", "-5", "Female", "?", "true", ""]]
DATA = make_csv_file(ROWS)


def test_uploaded_rows_are_gathered_from_the_table(vault: Vault) -> None:
    """The fingerprint is computed from the upload's bytes under the owner's key."""
    outcome = vault.ingest(vault.receive(DATA))
    assert isinstance(outcome, Ingested)
    with vault.open(outcome) as table:
        assert table.slots == 100
        gathered = table.gather(np.arange(100))
    for name, values in parse_csv(DATA, COLUMNS).items():
        assert gathered[name].tolist() == values + [0] * 97
    key = vault.opening_key.fingerprint_key("key_owner")
    assert outcome.fingerprint == hmac.new(key, hashlib.sha256(DATA).digest(), hashlib.sha256).hexdigest()


def test_table_opens_for_its_content_only(vault: Vault) -> None:
    outcome = vault.ingest(vault.receive(DATA))
    assert isinstance(outcome, Ingested)
    flipped = outcome.wrapped_key[:-1] + bytes([outcome.wrapped_key[-1] ^ 1])
    others: dict[str, object] = {
        "dataset_id": "ds_2",
        "version": 2,
        "opening_key": make_vault(vault.root / "other").opening_key,
        "dataset_box": seal_new_dataset_key("ds_1", vault.sealing_key),
        "wrapped_key": flipped,
        "facts_digest": "e" * 64,
    }
    vault.open(outcome).close()
    for name, other in others.items():
        with pytest.raises(VaultError):
            vault.open(outcome, changes={name: other})


def test_table_of_an_older_version_opens(vault: Vault) -> None:
    """Its key is bound to no declaration; without the dataset's key no newer table can be made so."""
    outcome = vault.ingest(vault.receive(DATA))
    assert isinstance(outcome, Ingested)
    dataset_key = vault.opening_key.dataset_key(vault.dataset_box, "ds_1")
    content_key = unwrap_key(outcome.wrapped_key, dataset_key, make_declared_context("ds_1", 1, FACTS))
    older = wrap_key(content_key, dataset_key, make_content_context("ds_1", 1))
    vault.open(outcome, changes={"wrapped_key": older}).close()
    for name, other in {"dataset_id": "ds_2", "version": 2}.items():
        with pytest.raises(VaultError):
            vault.open(outcome, changes={"wrapped_key": older, name: other})


def test_w3_no_canary_is_in_the_store(vault: Vault) -> None:
    """W3: neither after upload nor after ingestion is a value in plaintext, as text or as a double."""
    canary, word = 123456.78901234, "canary-7f3a"
    columns = (Column("x", "real", 0.0, 1e9), Column("w", "categorical", categories=("a", word)))
    data = make_csv_file([[repr(canary), word]] * 500, ("x", "w"))
    upload = vault.receive(data)
    after_upload = vault.files()
    outcome = vault.ingest(upload, columns, 1000)
    assert isinstance(outcome, Ingested)
    assert len(after_upload) == 1
    assert len(vault.files()) == 2
    stored = b"".join([*after_upload.values(), *vault.files().values()])
    digest = hashlib.sha256(data)
    for trace in (repr(canary).encode(), word.encode(), digest.digest(), digest.hexdigest().encode()):
        assert trace not in stored
    for layout in ("<d", ">d", "<f", ">f"):
        assert struct.pack(layout, canary) not in stored
    with vault.open(outcome, columns, 1000) as table:
        assert table.gather(np.array([7]))["x"][0] == canary


def test_w3_size_of_a_table_does_not_reveal_its_rows(vault: Vault) -> None:
    """W3: tables with rows, null rows or missing rows have one size."""
    sizes = set()
    for rows in (ROWS[1:2], ROWS * 30):
        outcome = vault.ingest(vault.receive(make_csv_file(rows)))
        assert isinstance(outcome, Ingested)
        sizes.add(len(vault.files()[outcome.table_object]))
    assert len(sizes) == 1


@pytest.mark.parametrize(
    ("data", "outcome"),
    [
        (b"", Rejected("empty")),
        (b"age\n1\n", Rejected("missing_column", tuple(NAMES[1:]))),
        (make_csv_file(ROWS * 40), Rejected("too_many_units")),
        (b"\0", Rejected("malformed")),
    ],
)
def test_faulty_file_is_rejected_and_leaves_no_object(vault: Vault, data: bytes, outcome: Rejected) -> None:
    upload = vault.receive(data)
    before = vault.files()
    assert vault.ingest(upload) == outcome
    assert vault.files() == before


@pytest.mark.slow
@pytest.mark.parametrize("limits", [Limits(memory_bytes=64 << 20), Limits(time_scale=1e-9), Limits(decoded_bytes=1000)])
@pytest.mark.long
def test_file_that_exceeds_a_cap_is_too_large(vault: Vault, limits: Limits) -> None:
    """Caps of memory, processor time and decoded size: the file is at fault, and a retry would not help.

    The least limit of processor time is one second; the file takes several seconds on any machine.
    """
    upload = vault.receive(b"x\n" + b"0.25\n" * 24_000_000)
    before = vault.files()
    assert vault.ingest(upload, [Column("x", "real", 0, 1)], 60_000_000, limits) == Rejected("too_large")
    assert vault.files() == before


def test_altered_upload_is_never_parsed(vault: Vault) -> None:
    """It is authenticated before parsing, and the owner's file is not at fault."""
    upload = vault.receive(DATA)
    path = next(path for path in vault.root.rglob(upload.parts[0].object_name))
    altered = bytearray(path.read_bytes())
    altered[-1] ^= 1
    path.write_bytes(altered)
    assert vault.ingest(upload) == Failed(transient=False)
    assert set(vault.files()) == {upload.parts[0].object_name}


def test_uploads_and_keys_of_other_contents_do_not_open(vault: Vault) -> None:
    upload = vault.receive(DATA)
    with pytest.raises(VaultError):
        vault.ingest(replace(upload, parts=(replace(upload.parts[0], bound_to="ct_2"),)))
    with pytest.raises(VaultError):
        vault.ingest(replace(upload, dataset_id="ds_2"))
    with pytest.raises(ObjectMissing):
        vault.ingest(replace(upload, parts=(replace(upload.parts[0], object_name="0" * 32),)))
    assert set(vault.files()) == {upload.parts[0].object_name}


def test_child_over_its_time_limit_is_ended(vault: Vault) -> None:
    upload = vault.receive(DATA)
    assert vault.ingest(upload, limits=Limits(time_scale=1e-9, spare_seconds=-1.999)) == Failed(transient=False)
    assert set(vault.files()) == {upload.parts[0].object_name}


READY = '{"verdict": "ready", "fingerprint": "' + "0" * 64 + '"}'
ANSWERS = {
    "nothing": ("pass", Failed(transient=False)),
    "words": ("print('Traceback: 123456.789')", Failed(transient=False)),
    "no object": ("print('[1]')", Failed(transient=False)),
    "unknown verdict": ("""print('{"verdict": "fine"}')""", Failed(transient=False)),
    "unknown reason": ("""print('{"verdict": "rejected", "reason": "row 7"}')""", Failed(transient=False)),
    "loose fingerprint": ("""print('{"verdict": "ready", "fingerprint": "age=7"}')""", Failed(transient=False)),
    "ready but failing": (f"print('{READY}'); sys.stdout.flush(); os._exit(1)", Failed(transient=False)),
    "too much": ("print('x' * 8192)", Failed(transient=False)),
    "crash": ("os.kill(os.getpid(), 11)", Failed(transient=False)),
    "killed": ("os.kill(os.getpid(), 9)", Failed(transient=False)),
    "out of memory": ("os.abort()", Rejected("too_large")),
    "out of time": ("os.kill(os.getpid(), signal.SIGXCPU)", Rejected("too_large")),
    "store away": ("""print('{"verdict": "unavailable"}')""", Failed(transient=True)),
    "rejected": ("""print('{"verdict": "rejected", "reason": "malformed"}')""", Rejected("malformed")),
    **{
        name: (f"print(json.dumps({{'verdict': 'rejected', 'reason': {reason!r}, 'columns': {columns}}}))", outcome)
        for name, reason, columns, outcome in [
            ("a name", "missing_column", "['age']", Rejected("missing_column", ("age",))),
            ("a header's name", "unknown_column", "['id']", Rejected("unknown_column", ("id",))),
            ("a cell for a name", "missing_column", "['39']", Failed(transient=False)),
            ("a type of no column", "wrong_type", "['id']", Failed(transient=False)),
            ("a declared one that is unknown", "unknown_column", "['age']", Failed(transient=False)),
            ("names where there are none", "malformed", "['age']", Failed(transient=False)),
            ("too many names", "unknown_column", "[str(n) for n in range(21)]", Failed(transient=False)),
            ("a long name", "unknown_column", "['n' * 65]", Failed(transient=False)),
            ("a name of control characters", "unknown_column", "[chr(10)]", Failed(transient=False)),
            ("a number for a name", "unknown_column", "[39]", Failed(transient=False)),
            ("no list of names", "unknown_column", "{'age': 39}", Failed(transient=False)),
        ]
    },
}


@pytest.mark.parametrize(("behaviour", "outcome"), ANSWERS.values(), ids=ANSWERS.keys())
def test_w3_outcome_is_from_the_closed_list_and_no_table_remains(
    vault: Vault, monkeypatch: pytest.MonkeyPatch, behaviour: str, outcome: Failed | Rejected
) -> None:
    """W3: this holds for every output and failure of the child, and its unfinished table is deleted."""
    script = vault.root / "bin" / "corevault-ingest"
    script.parent.mkdir()
    script.write_text(
        f"#!{sys.executable}\nimport json, os, pathlib, signal, sys\n"
        "instructions = json.load(sys.stdin)\n"
        "root = pathlib.Path(instructions['vault_url'].removeprefix('file://'))\n"
        "(root / 'unfinished' / instructions['table_object']).write_bytes(b'half')\n"
        f"{behaviour}\n"
    )
    script.chmod(0o700)
    upload = vault.receive(DATA)
    monkeypatch.setattr(sys, "executable", str(script.with_name("python")))
    assert vault.ingest(upload) == outcome
    assert set(vault.files()) == {upload.parts[0].object_name, "corevault-ingest"}


def test_full_store_does_not_reject_the_file(vault: Vault) -> None:
    """W10: the attempt fails and can be repeated."""
    upload = vault.receive(DATA)
    unfinished = vault.root / "store" / "unfinished"
    unfinished.rmdir()
    unfinished.write_bytes(b"")
    try:
        with pytest.raises(DependencyUnavailable):
            vault.ingest(upload)
    finally:
        unfinished.unlink()


def test_child_gets_keys_neither_as_arguments_nor_in_its_environment(
    vault: Vault, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = vault.root / "bin" / "corevault-ingest"
    script.parent.mkdir()
    seen = vault.root / "seen"
    script.write_text(
        f"#!{sys.executable}\nimport os, pathlib, sys\n"
        "words = sys.stdin.read()\n"
        f"pathlib.Path({str(seen)!r}).write_bytes(pathlib.Path('/proc/self/cmdline').read_bytes()"
        " + b'|' + pathlib.Path('/proc/self/environ').read_bytes() + b'|' + words.encode())\n"
    )
    script.chmod(0o700)
    monkeypatch.setenv("COREVAULT_SECRET", "do-not-inherit")
    monkeypatch.setattr(sys, "executable", str(script.with_name("python")))
    vault.ingest(vault.receive(DATA))
    arguments, environment, instructions = seen.read_bytes().split(b"|", 2)
    assert b"content_key" in instructions
    assert b"do-not-inherit" not in environment
    assert len(arguments.strip(b"\0").split(b"\0")) == 2


def test_parquet_file_is_ingested(vault: Vault) -> None:
    sink = io.BytesIO()
    pq.write_table(pa.table({"x": np.arange(5000.0)}), sink)
    columns = [Column("x", "real", 0.0, 1e6)]
    outcome = vault.ingest(vault.receive(sink.getvalue(), PARQUET), columns, 5000)
    assert isinstance(outcome, Ingested)
    with vault.open(outcome, columns, 5000) as table:
        assert table.gather(np.arange(5000))["x"].tolist() == list(range(5000))


def test_each_ingestion_has_a_new_content_key(vault: Vault) -> None:
    upload = vault.receive(DATA)
    first, second = vault.ingest(upload), vault.ingest(upload)
    assert isinstance(first, Ingested)
    assert isinstance(second, Ingested)
    assert first.fingerprint == second.fingerprint
    assert first.wrapped_key != second.wrapped_key
    with pytest.raises(VaultError):
        vault.open(replace(first, wrapped_key=second.wrapped_key))
