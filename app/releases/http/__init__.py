"""Releases over HTTP: content negotiation, representations, cache and the fast path."""
