"""Releases in the tools that analysts use. Each module imports its tool when it is called."""
