"""Requests: bodies, JSON, pagination, routes and idempotency keys."""
