"""An OpenID Connect provider on loopback, with a test authority, changeable keys and tokens."""

import json
import ssl
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import jwt
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from jwt.algorithms import ECAlgorithm, OKPAlgorithm, RSAAlgorithm

from tests.factories.certificates import Authority

AUDIENCE = "corevault"
PrivateKey = rsa.RSAPrivateKey | ec.EllipticCurvePrivateKey | ed25519.Ed25519PrivateKey
Answer = tuple[int, dict[str, str], bytes]


@dataclass
class SignInService:
    """``answers`` maps paths to answers; ``asked`` are the requested paths."""

    issuer: str
    authority: Path
    keys: dict[str, tuple[str, PrivateKey]] = field(default_factory=dict)
    answers: dict[str, Answer] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)

    @property
    def jwks_url(self) -> str:
        return f"{self.issuer}/keys"

    def new_key(self, name: str, algorithm: str = "ES256", *, bits: int = 2048) -> None:
        """Make a signing key with this name and publish it."""
        made: dict[str, PrivateKey] = {"ES256": ec.generate_private_key(ec.SECP256R1())}
        if algorithm == "EdDSA":
            made["EdDSA"] = ed25519.Ed25519PrivateKey.generate()
        if algorithm == "RS256":
            made["RS256"] = rsa.generate_private_key(public_exponent=65537, key_size=bits)
        self.keys[name] = (algorithm, made[algorithm])
        self.publish()

    def publish(self) -> None:
        listed = [_described(name, algorithm, key) for name, (algorithm, key) in self.keys.items()]
        self.answer("/keys", {"keys": listed})
        self.answer("/.well-known/openid-configuration", {"issuer": self.issuer, "jwks_uri": self.jwks_url})

    def answer(self, path: str, document: object, status: int = 200, **headers: str) -> None:
        self.answers[path] = (status, headers, json.dumps(document).encode())

    def claims(self, **changes: Any) -> dict[str, Any]:
        """Make the claims of a valid token; a change to None removes a claim."""
        at = int(time.time())
        valid = {"iss": self.issuer, "aud": AUDIENCE, "sub": "canary-subject", "iat": at, "nbf": at, "exp": at + 300}
        return {name: value for name, value in (valid | {"roles": ["owner"]} | changes).items() if value is not None}

    def token(self, key: str = "first", header: dict[str, Any] | None = None, **changes: Any) -> str:
        algorithm, secret = self.keys[key]
        return jwt.encode(self.claims(**changes), secret, algorithm, {"kid": key} | (header or {}))


def _described(name: str, algorithm: str, key: PrivateKey) -> dict[str, Any]:
    public: Any = key.public_key()
    library: Any = {"ES256": ECAlgorithm, "EdDSA": OKPAlgorithm, "RS256": RSAAlgorithm}[algorithm]
    return dict(library.to_jwk(public, as_dict=True)) | {"kid": name, "use": "sig", "alg": algorithm}


@contextmanager
def sign_in_service(folder: Path) -> Iterator[SignInService]:
    """Run the provider until the block ends."""
    authority = Authority(folder)
    certificate, key = authority.vouch_for("127.0.0.1")
    server = ThreadingHTTPServer(("127.0.0.1", 0), BaseHTTPRequestHandler)
    service = SignInService(f"https://127.0.0.1:{server.server_port}", authority.file)

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            service.asked.append(self.path)
            status, headers, body = service.answers.get(self.path, (404, {}, b"{}"))
            self.send_response(status)
            for name, value in {"Content-Length": str(len(body)), **headers}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Log nothing."""

    server.RequestHandlerClass = Handler
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    server.handle_error = lambda *_: None  # type: ignore[method-assign]  # clients that do not trust the authority disconnect
    service.new_key("first")
    thread = threading.Thread(target=server.serve_forever, args=(0.05,))
    thread.start()
    try:
        yield service
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
