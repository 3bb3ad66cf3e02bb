"""Sign-in of people: the authorisation code flow with PKCE (OpenID Connect Core, section 3.1; RFC 7636).

Browser and provider exchange a code. This process redeems it at the provider for an ID token, which it verifies.
"""

import base64
import hashlib
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final
from urllib.parse import urlencode

import httpx

from app.errors import DependencyUnavailable, Unauthenticated
from app.oidc.documents import NO_ANSWER, Documents
from app.oidc.keys import DISCOVERY
from app.oidc.tokens import Identity, TokenVerifier

FRESH_SECONDS: Final = 3600.0
LONGEST_CODE: Final = 4096


@dataclass(frozen=True, slots=True)
class Client:
    """The service at the provider. Without a secret it is a public client, which PKCE protects."""

    client_id: str
    secret: str | None = field(default=None, repr=False)
    scope: str = "openid"


@dataclass(frozen=True, slots=True)
class Attempt:
    """The secrets of one attempt to sign in, all bound to one browser.

    Attributes:
        redirect_uri: the address to which the provider sends the browser back.
        state: it protects against answers to attempts of other browsers.
        nonce: it binds the ID token to the attempt.
        verifier: it binds the code to the attempt.
    """

    redirect_uri: str
    state: str
    nonce: str
    verifier: str


class CodeFlow:
    """The flow at one provider; for several threads.

    Args:
        documents: fetches the provider's documents.
        issuer: the provider.
        client: the service at the provider.
        tokens: verifies ID tokens; its audience is the client's id.
    """

    def __init__(self, documents: Documents, issuer: str, client: Client, tokens: TokenVerifier) -> None:
        self._documents = documents
        self._issuer = issuer
        self._client = client
        self._tokens = tokens
        self._endpoints: Mapping[str, str] | None = None
        self._read_at = -float("inf")

    @property
    def issuer(self) -> str:
        return self._issuer

    def make_attempt(self, redirect_uri: str, derive: Callable[[str], str]) -> Attempt:
        """Make an attempt; ``derive`` makes the secret of each purpose."""
        return Attempt(redirect_uri, derive("state"), derive("nonce"), derive("verifier"))

    def make_address(self, attempt: Attempt) -> str:
        """Make the address at the provider where the person signs in.

        Raises:
            DependencyUnavailable: the provider does not answer correctly.
        """
        query = {
            "response_type": "code",
            "response_mode": "query",
            "client_id": self._client.client_id,
            "redirect_uri": attempt.redirect_uri,
            "scope": self._client.scope,
            "state": attempt.state,
            "nonce": attempt.nonce,
            "code_challenge": _encode(hashlib.sha256(attempt.verifier.encode()).digest()),
            "code_challenge_method": "S256",
        }
        address = self._find_endpoint("authorization_endpoint")
        return f"{address}{'&' if '?' in address else '?'}{urlencode(query)}"

    def redeem(self, code: str, attempt: Attempt) -> Identity:
        """Redeem a code and verify the ID token.

        Raises:
            Unauthenticated: the provider refuses the code, or the token does not belong to this attempt.
            Forbidden: the token does not state exactly one role.
            DependencyUnavailable: the provider does not answer correctly.
        """
        if not 0 < len(code) <= LONGEST_CODE:
            raise Unauthenticated
        form = {
            "grant_type": "authorization_code",
            "code": code,
            "redirect_uri": attempt.redirect_uri,
            "code_verifier": attempt.verifier,
            "client_id": self._client.client_id,
        }
        secret = None if self._client.secret is None else (self._client.client_id, self._client.secret)
        answer = self._documents.post(self._find_endpoint("token_endpoint"), form, secret)
        if answer is None:
            raise Unauthenticated
        token = answer.get("id_token")
        if not isinstance(token, str):
            raise DependencyUnavailable(NO_ANSWER)
        return self._tokens.verify(token, nonce=attempt.nonce)

    def _find_endpoint(self, name: str) -> str:
        """Find an endpoint in the discovery document, which is read again after an hour."""
        endpoints, at = self._endpoints, time.monotonic()
        if endpoints is None or at - self._read_at > FRESH_SECONDS:
            endpoints = self._endpoints = self._discover()
            self._read_at = at
        return endpoints[name]

    def _discover(self) -> Mapping[str, str]:
        document: Mapping[str, Any] = self._documents.fetch(self._issuer.rstrip("/") + DISCOVERY)
        endpoints = {name: str(document.get(name)) for name in ("authorization_endpoint", "token_endpoint")}
        if document.get("issuer") != self._issuer or not all(map(_is_https, endpoints.values())):
            raise DependencyUnavailable(NO_ANSWER)
        return endpoints


def _is_https(address: str) -> bool:
    try:
        url = httpx.URL(address)
    except httpx.InvalidURL:
        return False
    return url.scheme == "https" and bool(url.host) and not url.fragment


def _encode(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()
