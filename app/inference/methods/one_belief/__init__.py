"""DP-PSVI by a surrogate, with one belief of the rows."""
