"""The client's parts, one a noun of the API."""
