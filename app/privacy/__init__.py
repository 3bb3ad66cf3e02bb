"""The pure core of privacy: what happened (events), what it costs (accounting), what is admitted (filter)."""
