"""Integrity: the hash chain, signed snapshots and checkpoints, and their verification."""
