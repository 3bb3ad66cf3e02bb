"""The demo: the main use case on real data, from upload to posterior: ``make demo``."""
