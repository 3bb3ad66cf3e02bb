"""Corevault's service: every decision lives here (see docs/architecture.md)."""
