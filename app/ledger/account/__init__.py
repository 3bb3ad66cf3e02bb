"""Accounts: opening, limits, allocations, freezing, and the locked account that extends its chain."""
