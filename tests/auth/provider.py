"""An OpenID Connect provider on loopback, with a test authority, changeable keys and tokens."""

import base64
import hashlib
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
from urllib.parse import parse_qsl, urlencode, urlsplit

import jwt
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from jwt.algorithms import ECAlgorithm, OKPAlgorithm, RSAAlgorithm

from app.oidc import Documents, Provider, ProviderKeys, TokenVerifier
from tests.factories.certificates import Authority

AUDIENCE = "corevault"
ROLES = {"vault-owner": "owner", "vault-analyst": "analyst", "vault-admin": "admin", "owner": "owner"}
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
    codes: dict[str, dict[str, Any]] = field(default_factory=dict)
    """The codes that can still be redeemed, with the request and the claims of each."""
    redeemed: list[tuple[dict[str, str], str | None]] = field(default_factory=list)
    """Forms at the token endpoint, and their credentials."""

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
        endpoints = {f"{name}_endpoint": f"{self.issuer}/{name}" for name in ("authorization", "token")}
        described = {"issuer": self.issuer, "jwks_uri": self.jwks_url, **endpoints}
        self.answer("/.well-known/openid-configuration", described)

    def answer(self, path: str, document: object, status: int = 200, **headers: str) -> None:
        self.answers[path] = (status, headers, json.dumps(document).encode())

    def approve(self, address: str, **changes: Any) -> dict[str, str]:
        """Let a person sign in at ``address``; return the query of the way back. ``changes`` are of the claims."""
        asked = dict(parse_qsl(urlsplit(address).query))
        code = f"code-{len(self.codes)}-{len(self.redeemed)}"
        self.codes[code] = {"asked": asked, "changes": {"aud": asked["client_id"], "nonce": asked["nonce"]} | changes}
        return {"code": code, "state": asked["state"], "iss": self.issuer}

    def redeem(self, form: dict[str, str], credentials: str | None) -> Answer:
        """Answer at the token endpoint. A code is redeemed once, with its verifier and its address."""
        self.redeemed.append((form, credentials))
        found = self.codes.pop(form.get("code", ""), None)
        digest = hashlib.sha256(form.get("code_verifier", "").encode()).digest()
        challenge = base64.urlsafe_b64encode(digest).rstrip(b"=").decode()
        stated = (form.get("redirect_uri"), challenge, form.get("client_id"), form.get("grant_type"))
        asked = {} if found is None else found["asked"]
        names = ("redirect_uri", "code_challenge", "client_id")
        if found is None or stated != (*(asked[name] for name in names), "authorization_code"):
            return 400, {}, b'{"error": "invalid_grant", "error_description": "canary-7461"}'
        token = self.token(**found["changes"])
        return 200, {}, json.dumps({"id_token": token, "access_token": "opaque", "token_type": "Bearer"}).encode()

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
            if self.path.startswith("/authorization?"):  # a browser, whose person signs in at once
                query = service.approve(service.issuer + self.path)
                asked = dict(parse_qsl(urlsplit(self.path).query))
                self._answer((302, {"Location": f"{asked['redirect_uri']}?{urlencode(query)}"}, b""))
                return
            self._answer(service.answers.get(self.path, (404, {}, b"{}")))

        def do_POST(self) -> None:
            service.asked.append(self.path)
            sent = self.rfile.read(int(self.headers["Content-Length"])).decode()
            form = dict(parse_qsl(sent))
            self._answer(service.answers.get(self.path) or service.redeem(form, self.headers["Authorization"]))

        def _answer(self, answer: Answer) -> None:
            status, headers, body = answer
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


def make_verifier(service: SignInService, *, jwks_url: str | None = None, role_claim: str = "roles") -> TokenVerifier:
    provider = Provider(service.issuer, AUDIENCE, role_claim, ROLES)
    return TokenVerifier(provider, ProviderKeys(Documents(service.authority), service.issuer, jwks_url))


def make_headers(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"}
