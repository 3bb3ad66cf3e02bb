"""The audit log: who called what, and how it ended. Append-only, chained, and without any content."""
