"""The continuous audit of production: its state in the database, its alarm, and fresh starts."""
