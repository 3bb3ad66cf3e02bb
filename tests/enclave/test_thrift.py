"""Thrift's compact protocol: values of every type are skipped to their last byte."""

import pytest

from workers.enclave.faults import FileFault
from workers.enclave.thrift import CompactReader

TRUE, BYTE, I64, DOUBLE, BINARY, LIST, SET, MAP, STRUCT = 1, 3, 6, 7, 8, 9, 10, 11, 12


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        (TRUE, b""),
        (BYTE, b"\x80"),
        (I64, b"\x80\x01"),
        (DOUBLE, b"\x80" * 8),
        (BINARY, b"\x03abc"),
        (LIST, b"\x26\x80\x01\x02"),  # two integers
        (SET, b"\x31\x01\x02\x01"),  # three truth values, a byte each
        (LIST, b"\xf7\x10" + bytes(128)),  # sixteen doubles, with their number after the head
        (STRUCT, b"\x16\x02\x13\x80\x00"),  # an integer, a byte, the end
        (STRUCT, b"\x06\x64\x02\x00"),  # an integer whose field's number, 50, is written out
    ],
)
def test_value_is_skipped_to_its_last_byte(kind: int, value: bytes) -> None:
    reader = CompactReader(value + b"next")
    reader.skip(kind)
    assert reader.position == len(value)


@pytest.mark.parametrize("kind", [0, MAP, 13, 15])
def test_value_of_an_unknown_type_is_malformed(kind: int) -> None:
    with pytest.raises(FileFault, match="malformed"):
        CompactReader(bytes(9)).skip(kind)


def test_values_are_nested_32_times_at_most() -> None:
    def nested(depth: int) -> CompactReader:
        return CompactReader((b"\x19" * (depth - 1)) + b"\x03")  # a list of one list, and at last an empty list

    nested(32).skip(LIST)
    with pytest.raises(FileFault, match="malformed"):
        nested(33).skip(LIST)


def test_list_beyond_the_end_stops_there() -> None:
    """A list of 2**60 doubles ends with the data, not after 2**60 steps."""
    reader = CompactReader(b"\xf7" + b"\x80" * 8 + b"\x10" + bytes(80))
    with pytest.raises(IndexError):
        reader.skip(LIST)


def test_length_is_of_a_list_of_structs_only() -> None:
    assert CompactReader(b"\x3c").count() == 3
    assert CompactReader(b"\xfc\x80\x01").count() == 128
    with pytest.raises(FileFault, match="malformed"):
        CompactReader(b"\x36").count()
