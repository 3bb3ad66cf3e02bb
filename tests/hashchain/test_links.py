"""W11: an entry continues a chain only if its position, its link and its hash all fit."""

from typing import Any

import pytest

from app.hashchain.links import GENESIS, End, hash_entry

CONTENT: dict[str, Any] = {"kind": "reserved", "body": {"epsilon": 1.0}}
END = End().extend({"kind": "account_opened"})


def test_next_entry_continues_the_chain() -> None:
    after = END.extend(CONTENT)
    assert END.is_continued_by(2, END.entry_hash, after.entry_hash, CONTENT)


@pytest.mark.parametrize("previous", [GENESIS, "f" * 64, None])
def test_entry_with_another_link_does_not_continue_the_chain(previous: str | None) -> None:
    """Anyone can compute the hash of such an entry."""
    assert not END.is_continued_by(2, previous, hash_entry(2, previous, CONTENT), CONTENT)


@pytest.mark.parametrize("sequence", [1, 0, -1])
def test_entry_at_an_earlier_position_does_not_continue_the_chain(sequence: int) -> None:
    correct = hash_entry(sequence, END.entry_hash, CONTENT)
    assert not END.is_continued_by(sequence, END.entry_hash, correct, CONTENT)


def test_entry_with_altered_content_does_not_continue_the_chain() -> None:
    after = END.extend(CONTENT)
    assert not END.is_continued_by(2, END.entry_hash, after.entry_hash, {**CONTENT, "kind": "voided"})


def test_chain_of_checkpoints_may_have_gaps() -> None:
    after = END.extend(CONTENT, above=6)
    assert after.sequence == 7
    assert END.is_continued_by(7, END.entry_hash, after.entry_hash, CONTENT)
