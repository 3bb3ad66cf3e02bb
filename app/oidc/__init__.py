"""Sign-in by OpenID Connect: bearer tokens of one issuer, verified here and nowhere else. Needs the extra ``oidc``."""

from app.oidc.documents import Documents
from app.oidc.keys import ProviderKeys
from app.oidc.tokens import Identity, Provider, TokenVerifier

__all__ = ["Documents", "Identity", "Provider", "ProviderKeys", "TokenVerifier"]
