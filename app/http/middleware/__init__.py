"""ASGI middleware around every request."""
