"""Sign-in with OpenID Connect: bearer tokens of one issuer, and its authorisation code flow.

It needs the extra ``oidc``.
"""

from app.oidc.code_flow import Attempt, Client, CodeFlow
from app.oidc.documents import Documents
from app.oidc.keys import ProviderKeys
from app.oidc.tokens import Identity, Provider, TokenVerifier

__all__ = ["Attempt", "Client", "CodeFlow", "Documents", "Identity", "Provider", "ProviderKeys", "TokenVerifier"]
