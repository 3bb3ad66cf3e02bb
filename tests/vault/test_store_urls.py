"""Storage URLs have one of two schemes; others are refused."""

import pytest

from app.vault.errors import VaultError
from app.vault.s3_store import S3Store
from app.vault.stores import make_folder_url, open_store

S3 = "s3://bucket/pre/fix?endpoint=http://127.0.0.1:9&region=eu-west-1"


@pytest.mark.parametrize(
    "url",
    [
        "s3://",
        "s3:///prefix",
        "s3://user:secret@bucket/x",
        "s3://bucket?secret_key=secret",
        "s3://bucket?region=a&region=b",
        "file://host/x",
        "file:///x?region=a",
        "/plain/path",
        "",
        "file:relative",
    ],
)
def test_other_urls_are_refused_and_not_repeated(url: str) -> None:
    with pytest.raises(VaultError, match=r"file:///.*s3://") as refusal:
        open_store(url)
    assert "secret" not in str(refusal.value)


def test_an_s3_url_opens_without_a_request() -> None:
    store = open_store(S3)
    assert isinstance(store, S3Store)
    assert store.url == S3


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        (S3, "s3://bucket/pre/fix/vault?endpoint=http://127.0.0.1:9&region=eu-west-1"),
        ("s3://bucket?region=x", "s3://bucket/vault?region=x"),
        ("file:///data/storage/", "file:///data/storage/vault"),
    ],
)
def test_the_url_of_a_folder_keeps_the_parameters(url: str, expected: str) -> None:
    assert make_folder_url(url, "vault") == expected
