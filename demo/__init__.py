"""The main job, end to end, on real data: ``make demo``."""
