"""What the server answers, as frozen dataclasses."""
