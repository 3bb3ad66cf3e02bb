"""Sequential coreset Monte Carlo: a filter over a stream of rows, with a memory of weighted rows (``scmc``)."""
