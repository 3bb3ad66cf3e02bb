"""Sign-in with OpenID Connect: verification of bearer tokens of one issuer.

It needs the extra ``oidc``.
"""

from app.oidc.documents import Documents
from app.oidc.keys import ProviderKeys
from app.oidc.tokens import Identity, Provider, TokenVerifier

__all__ = ["Documents", "Identity", "Provider", "ProviderKeys", "TokenVerifier"]
