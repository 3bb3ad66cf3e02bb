"""Requests of a reader to an S3 server: the right bytes, few requests, little surplus."""

import random
from dataclasses import dataclass, field
from typing import cast

import pytest

from app.vault.s3_keys import Range
from app.vault.s3_reader import LEAST_AHEAD, MOST_AHEAD, PiecewiseReader

PIECE = 1_000_003
CONTENT = random.Random(0).randbytes(3 * PIECE + 4711)


@dataclass
class Server:
    """Pieces in memory; records the length of every request."""

    requests: list[int] = field(default_factory=list)

    def reader(self) -> PiecewiseReader:
        return PiecewiseReader(lambda index: cast(Range, Piece(self, index)), len(CONTENT), PIECE)


@dataclass
class Piece:
    server: Server
    index: int

    def read(self, offset: int, length: int) -> bytes:
        self.server.requests.append(length)
        begin = self.index * PIECE + offset
        return CONTENT[begin : begin + length]


@pytest.fixture
def server() -> Server:
    return Server()


def test_expected_ranges_take_one_request_each(server: Server) -> None:
    """Two columns of a table, read in small steps. The second column spans two pieces."""
    reader = server.reader()
    columns = [(100_000, 500_000), (900_000, 1_400_000)]
    reader.expect(columns)
    for begin, end in columns:
        reader.seek(begin)
        for place in range(begin, end, 50_000):
            assert reader.read(50_000) == CONTENT[place : place + 50_000]
    assert server.requests == [400_000, PIECE - 900_000, 1_400_000 - PIECE]


def test_adjacent_ranges_take_one_request(server: Server) -> None:
    reader = server.reader()
    reader.expect([(300_000, 400_000), (0, 200_000), (200_010, 300_000)])
    assert b"".join(reader.read(10_000) for _ in range(40)) == CONTENT[:400_000]
    assert server.requests == [400_000]


def test_read_ahead_grows_while_the_file_is_read_in_order(server: Server) -> None:
    reader = server.reader()
    reader.seek(100)
    while reader.tell() < 900_000:
        reader.read(50_000)
    assert server.requests == [LEAST_AHEAD, 2 * LEAST_AHEAD, PIECE - 100 - 3 * LEAST_AHEAD]


@pytest.mark.parametrize("seed", range(20))
def test_any_expected_ranges_give_the_right_bytes(server: Server, seed: int) -> None:
    chance = random.Random(seed)
    reader = server.reader()
    for _ in range(60):
        begin = chance.randrange(len(CONTENT) + 10)
        if chance.random() < 0.3:
            spans = [chance.randrange(len(CONTENT)) for _ in range(4)]
            reader.expect([(place, place + chance.randrange(1, 2 * PIECE)) for place in spans])
        if chance.random() < 0.6:
            reader.seek(begin)
        place, length = reader.tell(), chance.randrange(200_000)
        assert reader.read(length) == CONTENT[place : place + length]
    assert max(server.requests) <= MOST_AHEAD
