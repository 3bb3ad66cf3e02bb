"""Content security policies of the pages. Neither allows anything inline, or anything from another server."""

from typing import Final

_COMMON: Final = "style-src 'self'; img-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
POLICY: Final = f"default-src 'none'; {_COMMON}"
"""The policy of pages without scripts."""
TIMED_POLICY: Final = f"default-src 'none'; script-src 'self'; {_COMMON}"
"""The policy of pages whose only script shows times in the reader's time zone. It can send nothing."""
SCRIPTED_POLICY: Final = f"default-src 'none'; script-src 'self'; connect-src 'self'; {_COMMON}"
"""The policy of pages whose scripts send requests to this server."""
