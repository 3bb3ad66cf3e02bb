"""Bytes at rest: key files, sealing, objects in a store. Knows neither rows nor tables."""
