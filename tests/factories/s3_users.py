"""Users of the S3 server, each with one of the documented policies."""

import json
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from unittest.mock import patch

import httpx
from pyarrow.fs import S3FileSystem

from app.vault import s3_keys
from support.servers import S3

POLICIES = Path(__file__).parents[2] / "deploy" / "s3"
PREFIX, MARK_PREFIX = "installation", "mark"


@dataclass(frozen=True)
class User:
    """A credential of a user."""

    access_key: str
    secret_key: str

    @contextmanager
    def opens_stores(self) -> Iterator[None]:
        """Make stores that are opened in this context use the credential, also afterwards."""
        real = S3FileSystem

        def signed(**options: object) -> S3FileSystem:
            return real(access_key=self.access_key, secret_key=self.secret_key, **options)

        with patch.object(s3_keys, "S3FileSystem", signed):
            yield

    @property
    def environment(self) -> dict[str, str]:
        return {"AWS_ACCESS_KEY_ID": self.access_key, "AWS_SECRET_ACCESS_KEY": self.secret_key}


def policy(name: str, bucket: str) -> dict[str, object]:
    """Return the documented policy for this bucket, which also holds the marks.

    The test server checks the removal of many keys in one request against the bucket, while S3 checks each key. The
    last statement allows only this request.
    """
    text = (POLICIES / f"{name}.json").read_text()
    named = {"MARK_BUCKET": bucket, "MARK_PREFIX": MARK_PREFIX, "BUCKET": bucket, "PREFIX": PREFIX}
    filled = re.sub("|".join(named), lambda match: named[match[0]], text)
    document: dict[str, list[object]] = json.loads(filled)
    removal = {"Effect": "Allow", "Action": "s3:DeleteObject", "Resource": f"arn:aws:s3:::{bucket}"}
    return {**document, "Statement": [*document["Statement"], removal]}


def new_user(server: S3, name: str, document: Mapping[str, object]) -> User:
    """Create a user with only this policy; call this before :func:`enforce`."""
    _ask(server, "CreateUser", UserName=name)
    _ask(server, "PutUserPolicy", UserName=name, PolicyName=name, PolicyDocument=json.dumps(document))
    answer = _ask(server, "CreateAccessKey", UserName=name)
    matches = [re.search(f"<{tag}>([^<]+)</{tag}>", answer) for tag in ("AccessKeyId", "SecretAccessKey")]
    access_key, secret_key = (each[1] for each in matches if each is not None)
    return User(access_key, secret_key)


def enforce(server: S3) -> None:
    """Make the server check signatures and policies from now on."""
    headers = {"Content-Type": "text/plain"}
    httpx.post(f"{server.endpoint}/moto-api/reset-auth", content=b"0", headers=headers).raise_for_status()


def _ask(server: S3, action: str, **members: str) -> str:
    scope = "AWS4-HMAC-SHA256 Credential=anybody/20260101/us-east-1/iam/aws4_request, SignedHeaders=host, Signature=0"
    form = {"Action": action, "Version": "2010-05-08", **members}
    answer = httpx.post(server.endpoint, data=form, headers={"Authorization": scope})
    answer.raise_for_status()
    return answer.text
