"""One query on many workers: a coordinator asks, helpers answer, sums travel sealed."""
