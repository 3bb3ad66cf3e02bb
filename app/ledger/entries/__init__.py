"""Entries: charges, admission, and the balance that follows."""
