"""Encrypted objects at rest: key files, sealing and stores; it does not depend on rows or tables."""
