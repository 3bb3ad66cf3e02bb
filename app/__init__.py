"""The Corevault service; see docs/architecture.md."""
