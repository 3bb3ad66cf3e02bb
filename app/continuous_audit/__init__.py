"""The continuous audit by workers: its state in the database, its alarm, and resets."""
