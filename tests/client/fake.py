"""A fake server with scripted answers, and a release signed as by the worker."""

import base64
import io
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import httpx
import numpy as np
import rfc8785
from corevault import Certificate, Client, Points, Release, SigningKey
from corevault._digest import digest_bytes
from corevault.verification import key_id_of
from nacl.signing import SigningKey as Ed25519

Answer = httpx.Response | httpx.TransportError | Callable[[httpx.Request], httpx.Response]

TIME = "2026-11-20T12:00:00Z"
DATASET = {
    "id": "ds_1",
    "name": "visits",
    "status": "ready",
    "slots": 100,
    "columns": [{"name": "age", "type": "real", "lower": 0, "upper": 10}],
    "sensitivity": "private",
    "content": {"version": 1, "status": "ready", "rejection": None},
    "created_at": TIME,
    "invented_later": {"a": 1},
}
JOB = {"id": "job_1", "dataset_id": "ds_1", "progress": {"fraction": 0.25, "stage": "running"}, "release_id": None}
DESIGN = [
    {"name": "age", "source": "age", "transform": {"kind": "affine", "type": "real", "center": 5.0, "scale": 5.0}},
    {"name": "sex=Male", "source": "sex", "transform": {"kind": "indicator", "value": "Male", "reference": "Female"}},
    {"name": "intercept", "source": None, "transform": {"kind": "constant", "value": 1}},
]


@dataclass
class Script:
    """Answers in order, the last one repeated. ``seen`` holds the requests, ``bodies`` their bodies."""

    answers: list[Answer]
    seen: list[httpx.Request] = field(default_factory=list)
    bodies: list[bytes] = field(default_factory=list)

    def __call__(self, request: httpx.Request) -> httpx.Response:
        self.seen.append(request)
        self.bodies.append(request.read())
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if isinstance(answer, httpx.TransportError):
            raise answer
        return answer if isinstance(answer, httpx.Response) else answer(request)

    def client(self, api_key: str | None = "cv_secret", max_retries: int = 2) -> Client:
        return Client(
            "http://vault.test", api_key, transport=httpx.MockTransport(self), max_retries=max_retries, timeout=5.0
        )


Start = Callable[..., Script]
"""Starts a scripted server for commands, with these answers."""


def ok(body: object, status: int = 200) -> httpx.Response:
    return httpx.Response(status, json=body)


def make_page(*items: object) -> httpx.Response:
    """The only page of a list."""
    return ok({"items": items, "next_cursor": None})


def problem(status: int, code: str, *, retry_after: str | None = None, **members: object) -> httpx.Response:
    body = {"type": "about:blank", "title": code, "status": status, "detail": f"A sentence about {code}.", "code": code}
    headers = {"X-Request-Id": "req_1", "Content-Type": "application/problem+json"}
    if retry_after is not None:
        headers["Retry-After"] = retry_after
    return httpx.Response(status, content=json.dumps(body | members), headers=headers)


def job(status: str, **members: object) -> dict[str, Any]:
    return JOB | {"status": status} | members


def events(*chunks: str, breaks: bool = False) -> httpx.Response:
    """An event stream of ``chunks``. With ``breaks`` the connection is lost after the last chunk."""

    class Stream(httpx.SyncByteStream):
        def __iter__(self) -> Iterator[bytes]:
            for chunk in chunks:
                yield chunk.encode()
            if breaks:
                raise httpx.ReadError("lost")

    return httpx.Response(200, headers={"Content-Type": "text/event-stream"}, stream=Stream())


@dataclass
class Published:
    """A release as the public endpoint serves it. Tests change one part of it."""

    key: Ed25519 = field(default_factory=Ed25519.generate)
    size: int = 4
    belief: bytes | None = None
    """The npz representation of the belief, if there is one."""

    def __post_init__(self) -> None:
        rng = np.random.default_rng(0)
        self.u = np.column_stack([rng.uniform(-1, 1, (self.size, 2)), np.ones(self.size)])
        self.y = np.array([0.0, 1.0, 1.0, 0.0])[: self.size]
        self.weight = rng.uniform(1, 20, self.size)
        self.bodies = {"json": b"{}", "csv": b"age,weight\n", "parquet": b"PAR1", "npz": self.npz()}
        self.release: dict[str, Any] = {
            "id": "rel_1",
            "dataset_id": "ds_1",
            "method": "dp-psvi",
            "size": self.size,
            "model": {"family": "logistic-regression", "features": ["age", "sex"], "target": "seen"}
            | {"prior": {"scale": 2.0}},
            "design": DESIGN,
            "diagnostics": {},
            "cost": {"epsilon": 0.5, "delta": 1e-6},
            "created_at": TIME,
        }
        self.statement: dict[str, Any] = {
            "release_id": "rel_1",
            "dataset_id": "ds_1",
            "method": "dp-psvi",
            "size": self.size,
            "model": self.release["model"],
            "design": DESIGN,
            "relation": "zero_out",
            "privacy": {"epsilon": 0.5, "delta": 1e-6},
            "account": {"limit": {"epsilon": 2.0, "delta": 1e-6}, "sequence": 4, "checkpoint": {"sequence": 2}},
            "digests": {name: digest_bytes(body) for name, body in self.bodies.items()}
            | ({} if self.belief is None else {"belief.npz": digest_bytes(self.belief)}),
            "events": [],
            "sampler": "poisson",
        }

    def npz(self, columns: tuple[str, ...] = ("age", "sex=Male", "intercept")) -> bytes:
        file = io.BytesIO()
        np.savez(file, u=self.u, y=self.y, weight=self.weight, columns=np.array(columns))
        return file.getvalue()

    @property
    def public_key(self) -> str:
        return base64.b64encode(bytes(self.key.verify_key)).decode()

    @property
    def published_keys(self) -> list[dict[str, str]]:
        entry = {"key_id": key_id_of(self.public_key), "algorithm": "ed25519", "public_key": self.public_key}
        return [entry | {"use": "release"}]

    def certificate(self) -> dict[str, Any]:
        signature = self.key.sign(rfc8785.dumps(self.statement)).signature
        signed = {"statement": self.statement, "signature": base64.b64encode(signature).decode()}
        return signed | {"key_id": key_id_of(self.public_key)}

    def parts(self) -> tuple[Release, Certificate, list[Points], list[SigningKey]]:
        points = [Points(name, body, "", digest_bytes(body), '"e"') for name, body in self.bodies.items()]
        keys = [SigningKey.from_json(key) for key in self.published_keys]
        return Release.from_json(self.release), Certificate.from_json(self.certificate()), points, keys

    def __call__(self, request: httpx.Request) -> httpx.Response:
        path = request.url.path
        if path.endswith("/certificate"):
            return ok(self.certificate())
        if path.endswith("/points"):
            body = self.bodies[request.url.params["format"]]
            return httpx.Response(200, content=body, headers={"Repr-Digest": digest_bytes(body), "ETag": '"e"'})
        if path.endswith("/belief") and self.belief is None:
            return problem(404, "not_found")
        if path.endswith("/belief"):
            return httpx.Response(200, content=self.belief, headers={"Repr-Digest": digest_bytes(self.belief or b"")})
        if path == "/v1/keys":
            return ok({"items": self.published_keys, "next_cursor": None})
        return ok(self.release)
