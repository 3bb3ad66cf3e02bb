"""One query on many workers: a coordinator splits it, helpers sum parts, and a mailbox carries sealed sums."""
