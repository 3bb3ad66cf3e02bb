"""No caller can set or learn a seed: W7."""

import ast
from pathlib import Path

import pytest

import app.inference
from app.inference.rng import monte_carlo_generator, sampling_generator

SOURCES = sorted(Path(app.inference.__file__).parent.rglob("*.py"))


def test_the_sources_are_found() -> None:
    assert {"oracle.py", "mechanisms.py", "dp_psvi.py"} <= {path.name for path in SOURCES}


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: path.name)
def test_nothing_takes_a_seed(path: Path) -> None:
    """W7: no argument, attribute or name of a seed anywhere in the core."""
    for node in ast.walk(ast.parse(path.read_text())):
        names = [
            getattr(node, "arg", None) or "",
            getattr(node, "id", None) or "",
            getattr(node, "attr", None) or "",
        ]
        assert not any("seed" in name.lower() for name in names)


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: path.name)
def test_global_and_default_generators_are_not_used(path: Path) -> None:
    """W7: generators are made in one module; noise is drawn in one."""
    text = path.read_text()
    if path.name != "rng.py":
        assert "default_rng" not in text
        assert "secrets" not in text
        assert "ChaCha" not in text.replace("ChaCha20", "")
    if path.name != "mechanisms.py":
        assert "opendp" not in text


def test_generators_start_from_fresh_entropy() -> None:
    for make in (sampling_generator, monte_carlo_generator):
        assert make().integers(0, 2**63, size=4).tolist() != make().integers(0, 2**63, size=4).tolist()


def test_subsampling_uses_a_keyed_stream_cipher() -> None:
    assert sampling_generator().bit_generator.state["state"]["rounds"] == 20
