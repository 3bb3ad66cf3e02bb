"""Answers of the server, as frozen dataclasses."""
