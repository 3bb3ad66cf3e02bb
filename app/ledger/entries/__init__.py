"""Entries: what a job is charged, whether it is admitted, and the balance that follows."""
